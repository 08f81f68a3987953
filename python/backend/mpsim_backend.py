"""Builds the wheel and the source distribution of mpsim (PEP 517); needs Python's own modules alone.

A wheel has the Python modules and, below mpsim/_install, what `make install` would install: the program, libmpsim,
policies and templates of figures; beside them the libraries that the program needs. Its program looks for those in
../lib, and only there first, so that nothing but libmpsim is loaded into Python and no file has to be patched.

The C sources are those around this folder. Where the checkout is configured, make builds it as it is configured;
else a temporary folder is configured, with the words of MPSIM_CONFIGURE (as "--with-libarchive=no CC=clang").
MPSIM_BUILD names another configured folder, MPSIM_LICENCES a folder with the licences of libraries that are linked
statically there (manylinux.sh).
"""
import base64
import gzip
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

PYTHON = Path(__file__).resolve().parent.parent
ROOT = PYTHON.parent
# glibc's own libraries and the compiler's, which every system of the wheel's tag has (PEP 600)
SYSTEM = re.compile(r"lib(c|m|pthread|dl|rt|util|resolv|gcc_s)\.so\.\d+$|ld-linux|linux-vdso")
METADATA = """\
Metadata-Version: 2.1
Name: mpsim
Version: {version}
Summary: Low-precision numbers, bit for bit: casts, block formats, tensor-core sums, loss scalers, reports on tensors
License: {licence}
Requires-Python: >=3.9
Requires-Dist: numpy
Classifier: License :: OSI Approved :: Apache Software License
Classifier: License :: OSI Approved :: BSD License
Classifier: License :: OSI Approved :: GNU Lesser General Public License v3 or later (LGPLv3+)
Classifier: License :: OSI Approved :: MIT License
Classifier: License :: OSI Approved :: zlib/libpng License
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: Python :: 3
Classifier: Typing :: Typed
Description-Content-Type: text/markdown

"""
# What wheels bundle, and its licence: by how the names of libraries begin. Debian's copyright files have the texts of all but
# these two, which add_licences() takes from the folder licences.
BUNDLED = {"libgmp": ("GMP", "LGPL-3.0-or-later OR GPL-2.0-or-later"), "libmpfr": ("MPFR", "LGPL-3.0-or-later"),
           "libjansson": ("jansson", "MIT"), "libyaml": ("libyaml", "MIT"), "libzip": ("libzip", "BSD-3-Clause"),
           "libarchive": ("libarchive", "BSD-2-Clause"), "libz": ("zlib", "Zlib"), "libbz2": ("bzip2", "bzip2-1.0.6"),
           "liblz4": ("lz4", "BSD-2-Clause"), "liblzma": ("liblzma", "public domain"), "libzstd": ("zstd", "BSD-3-Clause OR GPL-2.0-only"),
           "libhdf5": ("HDF5", "BSD-3-Clause"), "libsz": ("libaec", "BSD-2-Clause"), "libaec": ("libaec", "BSD-2-Clause")}
# The command: the program itself takes the place of the interpreter, which has imported nothing. pip writes its own
# first line.
COMMAND = """\
#!python
import os
import sys
from importlib.util import find_spec

spec = find_spec("mpsim")
program = os.path.join(spec.submodule_search_locations[0], "_install", "bin", "mpsim")
os.environ.setdefault("PYTHON", sys.executable)
os.execv(program, ["mpsim"] + sys.argv[1:])
"""


def version():
    return re.search(r"AC_INIT\(\[mpsim\], \[([^]]+)\]\)", (ROOT / "configure.ac").read_text()).group(1)


def licence():
    """All licences in a line: ours, and those of what a wheel has bundled, whose texts lie in its folder licenses."""
    named = dict.fromkeys("%s (%s)" % each for each in BUNDLED.values())
    return "Apache-2.0; wheels bundle " + ", ".join(named) + ", as far as the build needs them"


def metadata():
    return METADATA.format(version=version(), licence=licence()) + (ROOT / "doc" / "reference" / "python.md").read_text()


def run(*words, cwd):
    """A command whose output goes where pip shows it; the last lines of it are the error's."""
    print("+", shlex.join(map(str, words)), flush=True)
    try:
        done = subprocess.run(list(map(str, words)), cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except FileNotFoundError:
        raise SystemExit("mpsim: %s is not installed: ./bootstrap in %s installs what the build needs" % (words[0], ROOT)) from None
    if done.returncode:
        sys.stderr.write(done.stdout.decode(errors="replace")[-4000:])
        raise SystemExit("mpsim: '%s' failed in %s" % (shlex.join(map(str, words)), cwd))


def configured(temporary):
    """A configured build folder: MPSIM_BUILD, the checkout itself, or a new one."""
    given = os.environ.get("MPSIM_BUILD")
    if given or (ROOT / "config.status").exists():
        return Path(given or ROOT)
    if not (ROOT / "configure").exists():
        (ROOT / "build-aux").mkdir(exist_ok=True)
        run("autoreconf", "--install", "--force", cwd=ROOT)
    run(ROOT / "configure", *shlex.split(os.environ.get("MPSIM_CONFIGURE", "")), cwd=temporary)
    return Path(temporary)


def make(build, *words):
    # the options of a make above, and its jobs, are not for this one
    os.environ.pop("MAKEFLAGS", None)
    os.environ.pop("MFLAGS", None)
    jobs = os.environ.get("MPSIM_JOBS") or len(os.sched_getaffinity(0))
    run("make", "-j%s" % jobs, *words, cwd=build)


def libraries_of(file, beside=None):
    """Where the loader finds the libraries of an ELF file, by name; those of the system left out. beside: a folder that comes
    first."""
    path = ":".join(filter(None, [beside and str(beside), os.environ.get("LD_LIBRARY_PATH")]))
    environment = {**os.environ, "LD_LIBRARY_PATH": path} if path else os.environ
    listed = subprocess.run(["ldd", str(file)], stdout=subprocess.PIPE, check=True, env=environment).stdout.decode()
    missing = re.findall(r"(\S+) => not found", listed)
    if missing:
        raise SystemExit("mpsim: %s needs %s, not found" % (file, ", ".join(missing)))
    found = re.findall(r"(\S+) => (/\S+)", listed)
    return {name: Path(path).resolve() for name, path in found if not SYSTEM.search(name)}


def licence_of(library):
    """The copyright file of the Debian package that a library comes from; None elsewhere."""
    for path in (library, Path("/") / library.relative_to("/usr" if library.parts[1] == "usr" else "/")):
        try:
            owner = subprocess.run(["dpkg-query", "-S", str(path)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        except OSError:
            return None
        if owner.returncode == 0:
            package = owner.stdout.decode().split(":")[0]
            text = Path("/usr/share/doc") / package / "copyright"
            if text.exists():
                return package, text
    return None


def platform_tag(files):
    """manylinux with the newest version of glibc that a file asks for; linux where the C library is another."""
    machine = os.uname().machine
    asked = [int(minor) for f in files for minor in re.findall(rb"\0GLIBC_2\.(\d+)", f.read_bytes())]
    return "manylinux_2_%d_%s" % (max(asked), machine) if asked else "linux_" + machine


class Wheel:
    """A zip file with its RECORD; the same bytes from the same files."""

    def __init__(self, path):
        self.zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED)
        self.record = []

    def add(self, name, data, executable=False):
        info = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
        info.compress_type = zipfile.ZIP_DEFLATED
        info.external_attr = (0o100755 if executable else 0o100644) << 16
        self.zip.writestr(info, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.record.append("%s,sha256=%s,%d" % (name, digest, len(data)))

    def close(self, info):
        name = info + "/RECORD"
        self.add(name, ("\n".join(self.record) + "\n%s,,\n" % name).encode())
        self.zip.close()


def add_modules(wheel):
    """The modules, those of sub-packages, too; a link to what is installed beside them is none of them."""
    package = PYTHON / "src" / "mpsim"
    for f in sorted(package.rglob("*")):
        name = f.relative_to(package)
        if "_install" not in name.parts and (f.suffix in (".py", ".pyi") or f.name == "py.typed"):
            wheel.add("mpsim/" + name.as_posix(), f.read_bytes())


def add_installed(wheel, info, stage, build):
    """The staged files, the libraries that they need, and what their owners want to be said."""
    program, own = stage / "bin" / "mpsim", sorted((stage / "lib").iterdir())
    needed = libraries_of(program)
    for library in own:
        needed.update(libraries_of(library, stage / "lib"))
    for library in own:
        needed.pop(library.name, None)
    for f in sorted(stage.rglob("*")):
        if f.is_file():
            wheel.add("mpsim/_install/%s" % f.relative_to(stage).as_posix(), f.read_bytes(), f == program)
    for name, path in sorted(needed.items()):
        wheel.add("mpsim/_install/lib/" + name, path.read_bytes())
    # statically, or in a changed copy (nocrypto.sh)
    linked = {n: p for n, p in libraries_of(build / "mpsim").items() if n.startswith(("libarchive", "libzip"))}
    add_licences(wheel, info, {**needed, **linked})
    return [program, *own, *needed.values()]


def add_licences(wheel, info, libraries):
    """The texts of our licence and of those of what is bundled."""
    licences = {"COPYING": ROOT / "COPYING"}
    for name, path in libraries.items():
        found = licence_of(path)
        if found:
            licences[found[0]] = found[1]
        if name.startswith(("libgmp", "libmpfr")):  # whose copyright files refer to them
            licences.update((text.name, text) for text in (PYTHON / "backend" / "licences").iterdir())
        if not name.startswith(tuple(BUNDLED)):
            print("mpsim: the licence of %s is not in METADATA: BUNDLED of mpsim_backend.py has no row for it" % name)
    if os.environ.get("MPSIM_LICENCES"):  # of what was linked statically, a file for each
        licences.update((text.name, text) for text in Path(os.environ["MPSIM_LICENCES"]).iterdir())
    for package, text in sorted(licences.items()):
        wheel.add("%s/licenses/%s" % (info, package), text.read_bytes())


def wheel_text(tag):
    return "Wheel-Version: 1.0\nGenerator: mpsim_backend\nRoot-Is-Purelib: false\nTag: %s\n" % tag


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    """The metadata alone, which need no build; without this function pip builds the wheel twice."""
    info = Path(metadata_directory) / ("mpsim-%s.dist-info" % version())
    info.mkdir()
    (info / "METADATA").write_text(metadata())
    (info / "WHEEL").write_text(wheel_text("py3-none-any"))
    return info.name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    info = "mpsim-%s.dist-info" % version()
    with tempfile.TemporaryDirectory() as temporary:
        build = configured(temporary)
        stage = Path(tempfile.mkdtemp(dir=temporary))
        make(build, "python-stage", "python_stage=%s" % stage)
        unnamed = Path(temporary) / "wheel"
        wheel = Wheel(unnamed)
        add_modules(wheel)
        files = add_installed(wheel, info, stage, build)
        tag = "py3-none-" + platform_tag(files)
        wheel.add("mpsim-%s.data/scripts/mpsim" % version(), COMMAND.encode(), True)
        wheel.add(info + "/METADATA", metadata().encode())
        wheel.add(info + "/WHEEL", wheel_text(tag).encode())
        wheel.close(info)
        name = "mpsim-%s-%s.whl" % (version(), tag)
        shutil.copyfile(unnamed, Path(wheel_directory) / name)
        return name


def source_date():
    """The date of what is packed, as make dist has it."""
    if os.environ.get("SOURCE_DATE_EPOCH"):
        return int(os.environ["SOURCE_DATE_EPOCH"])
    try:
        log = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        return int(log.stdout)
    except (OSError, ValueError):
        return int((ROOT / "NEWS.md").stat().st_mtime)


def build_sdist(sdist_directory, config_settings=None):
    """What `make dist` has, with a pyproject.toml at its root that points into python/."""
    base = "mpsim-" + version()
    with tempfile.TemporaryDirectory() as temporary:
        build = configured(temporary)
        make(build, "distdir", "distdir=" + base)
        tree = build / base
        try:
            project = (PYTHON / "pyproject.toml").read_text()
            (tree / "pyproject.toml").write_text(project.replace('["backend"]', '["python/backend"]'))
            (tree / "PKG-INFO").write_text(metadata())
            date = source_date()

            def plain(member):  # nobody's, of no particular machine: the same bytes from the same files
                member.mtime, member.uid, member.gid, member.uname, member.gname = date, 0, 0, "", ""
                member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
                return member
            with open(Path(sdist_directory) / (base + ".tar.gz"), "wb") as f, \
                    gzip.GzipFile("", "wb", fileobj=f, mtime=date) as packed, tarfile.open(fileobj=packed, mode="w") as tar:
                tar.add(tree, base, filter=plain)
        finally:
            shutil.rmtree(tree)
    return base + ".tar.gz"

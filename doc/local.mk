# doc/local.mk -- pages, manual pages made from them and from --help, and completions for shells.
EXTRA_DIST += doc/formats.sh doc/man.awk doc/words.sh doc/questions doc/gallery \
  doc/scripts/stat-array.sh doc/scripts/stat-parallel.sh doc/scripts/stat-srun.sh doc/scripts/emulate-gpt2.py

# A distribution has every page of these folders: a new page needs no line here.
page_folders = doc doc/dev doc/explanations doc/howto doc/reference
dist-hook: dist-pages
dist-pages:
	@for folder in $(page_folders); do \
	  test -d "$(srcdir)/$$folder" || continue; \
	  $(MKDIR_P) "$(distdir)/$$folder" && cp -f "$(srcdir)/$$folder"/*.md "$(distdir)/$$folder" || exit 1; \
	done
.PHONY: dist-pages

# Words of all pages, by kind.
words: $(man1_MANS) $(man3_MANS) $(man5_MANS) $(man7_MANS)
	@sh "$(srcdir)/doc/words.sh" doc/man
.PHONY: words

# JSON Schemas of reports.
schemadir = $(pkgdatadir)/schema
EXTRA_DIST += doc/schema/README.md
dist_schema_DATA = doc/schema/mpsim.adaptive.1.json doc/schema/mpsim.advise.1.json doc/schema/mpsim.attention.1.json doc/schema/mpsim.calc.1.json \
  doc/schema/mpsim.cast-explain.1.json doc/schema/mpsim.check.1.json doc/schema/mpsim.diff.1.json \
  doc/schema/mpsim.dot-pair.1.json doc/schema/mpsim.dot.1.json doc/schema/mpsim.explain.1.json doc/schema/mpsim.formats.1.json \
  doc/schema/mpsim.emulate-audit.1.json doc/schema/mpsim.emulate-bisect.1.json doc/schema/mpsim.emulate-compare.1.json doc/schema/mpsim.emulate-doctor.1.json doc/schema/mpsim.info.1.json doc/schema/mpsim.judge.1.json doc/schema/mpsim.judge-inputs.1.json doc/schema/mpsim.judge-run.1.json doc/schema/mpsim.judge-tolerance.1.json doc/schema/mpsim.log.1.json doc/schema/mpsim.logprob.1.json doc/schema/mpsim.memory.1.json \
  doc/schema/mpsim.mismatch.1.json doc/schema/mpsim.models.1.json doc/schema/mpsim.positions.1.json \
  doc/schema/mpsim.recipes.1.json doc/schema/mpsim.reduce.1.json doc/schema/mpsim.replay.1.json doc/schema/mpsim.scaler.1.json \
  doc/schema/mpsim.scalers.1.json doc/schema/mpsim.stat.1.json doc/schema/mpsim.train.1.json doc/schema/mpsim.verify.1.json

# What the program prints of itself. A program for another machine cannot be asked: its manual pages are left out.
if !CROSS
man1_MANS = $(manual_commands:%=doc/man/mpsim-%.1) doc/man/mpsim.1
man3_MANS = doc/man/libmpsim.3
man5_MANS = doc/man/mpsim-policy.5
man7_MANS = doc/man/mpsim-format.7
bashcompletiondir = $(datadir)/bash-completion/completions
nodist_bashcompletion_DATA = doc/completion/mpsim
zshcompletiondir = $(datadir)/zsh/site-functions
nodist_zshcompletion_DATA = doc/completion/_mpsim
fishcompletiondir = $(datadir)/fish/vendor_completions.d
nodist_fishcompletion_DATA = doc/completion/mpsim.fish
endif
manual_commands = advise attention calc cast diff dot emulate explain formats info judge log memory merge mismatch plot replay report scaler stat train verify
CLEANFILES += $(man1_MANS) $(man3_MANS) $(man5_MANS) $(man7_MANS) $(nodist_bashcompletion_DATA) \
  $(nodist_zshcompletion_DATA) $(nodist_fishcompletion_DATA)

$(manual_commands:%=doc/man/mpsim-%.1) doc/man/mpsim.1: mpsim$(EXEEXT)
	@$(MKDIR_P) $(@D) && page=$(@F) && page=$${page#mpsim} && page=$${page%.1} && ./mpsim$(EXEEXT) $${page#-} --help=man >$@.part && mv $@.part $@
doc/completion/mpsim: mpsim$(EXEEXT)
	@$(MKDIR_P) $(@D) && ./mpsim$(EXEEXT) --help=bash >$@.part && mv $@.part $@
doc/completion/_mpsim: mpsim$(EXEEXT)
	@$(MKDIR_P) $(@D) && ./mpsim$(EXEEXT) --help=zsh >$@.part && mv $@.part $@
doc/completion/mpsim.fish: mpsim$(EXEEXT)
	@$(MKDIR_P) $(@D) && ./mpsim$(EXEEXT) --help=fish >$@.part && mv $@.part $@

page_to_manual = $(AWK) -v version='mpsim $(VERSION)' -f $(srcdir)/doc/man.awk
doc/man/libmpsim.3: doc/reference/library.md doc/man.awk
	@$(MKDIR_P) $(@D) && $(page_to_manual) -v name=libmpsim -v section=3 $(srcdir)/doc/reference/library.md >$@.part && mv $@.part $@
doc/man/mpsim-policy.5: data/policies/README.md doc/man.awk
	@$(MKDIR_P) $(@D) && $(page_to_manual) -v name=mpsim-policy -v section=5 $(srcdir)/data/policies/README.md >$@.part && mv $@.part $@
doc/man/mpsim-format.7: mpsim$(EXEEXT) doc/formats.sh doc/man.awk
	@$(MKDIR_P) $(@D) && sh "$(srcdir)/doc/formats.sh" ./mpsim$(EXEEXT) >$@.md && $(page_to_manual) -v name=mpsim-format -v section=7 $@.md >$@.part && \
	  rm -f $@.md && mv $@.part $@

"""Writes data/digits/digits.inc: the 8 x 8 digits of scikit-learn's load_digits as C strings.

usage: python3 digits.py > ../digits/digits.inc    (scikit-learn, numpy; see requirements.txt)
"""
from sklearn.datasets import load_digits

digits = load_digits()
images = digits.images.astype(int).reshape(-1, 64)
assert images.shape == (1797, 64) and images.min() == 0 and images.max() == 16
print("/* 1797 digits of 8 x 8 pixels, made by data/record/digits.py; see README.md: a label, then")
print(" * 'a' + value of every pixel (0 to 16), rows from the top. The last 360 are test images. */")
for label, image in zip(digits.target, images):
    print('"%d%s",' % (label, "".join(chr(97 + v) for v in image)))

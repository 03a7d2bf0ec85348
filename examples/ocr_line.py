"""What a client of the OCR recognition model (PP-OCRv4) does around the call: draw, normalise, decode.

The model reads one line of text: input x FP32 [batch, 3, 48, width], output FP32 [batch, steps, 6625], the
probabilities of each class at each step. Class 0 is CTC's blank, 1..6623 are the key file's lines, the last
one is the space.
"""

import os
import random

import numpy as np
from PIL import Image, ImageDraw, ImageFont

HEIGHT = 48
INPUT_NAME = "x"
KEYS_FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".deps", "models", "ppocr_keys_v1.txt")
FONT_FILE = "/usr/share/fonts/truetype/dejavu/DejaVuSerif.ttf"  # Debian's fonts-dejavu-core
FONT_SIZE = 32
MARGIN = 12
MAX_WIDTH = 4096

# Glyphs that look alike, to the model as to people, are left out (0 O, 1 I), and so is J, whose double the
# model reads as one. Of 3,000 random strings of ten, in this font, size and margin, it read all 3,000.
ALPHABET = "ABCDEFGHKLMNPQRSTUVWXYZ23456789"
RANDOM_LENGTH = 10


def random_text():
    return "".join(random.SystemRandom().choice(ALPHABET) for _ in range(RANDOM_LENGTH))


def draw(text):
    """A picture of the text, black on white, 48 pixels high."""
    font = ImageFont.truetype(FONT_FILE, FONT_SIZE)
    left, _, right, _ = font.getbbox(text, anchor="ls")
    ascent, descent = font.getmetrics()
    picture = Image.new("RGB", (right - left + 2 * MARGIN, HEIGHT), "white")
    baseline = (HEIGHT - ascent - descent) // 2 + ascent
    ImageDraw.Draw(picture).text((MARGIN - left, baseline), text, font=font, fill="black", anchor="ls")
    return picture


def to_tensor(picture):
    """[1, 3, 48, width]: scaled to the height, BGR, each value from -1 to 1."""
    width = max(1, min(MAX_WIDTH, round(picture.width * HEIGHT / picture.height)))
    picture = picture.convert("RGB").resize((width, HEIGHT), Image.BILINEAR)
    rgb = np.asarray(picture, dtype=np.float32)
    bgr = rgb[:, :, ::-1].transpose(2, 0, 1)
    return np.ascontiguousarray((bgr / 255 - 0.5) / 0.5)[np.newaxis]


def load_keys(path=KEYS_FILE):
    with open(path, encoding="utf-8") as file:
        return [""] + file.read().rstrip("\n").split("\n") + [" "]


def to_text(probabilities, keys):
    """Greedy CTC of [steps, classes]: the best class of each step, repeats merged, blanks dropped."""
    if probabilities.shape[1] != len(keys):
        raise ValueError(f"the model has {probabilities.shape[1]} classes, the key file {len(keys)}")
    best = probabilities.argmax(axis=1)
    changes = np.concatenate([[True], best[1:] != best[:-1]])
    return "".join(keys[index] for index in best[changes]).strip()

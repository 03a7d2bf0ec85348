#!/usr/bin/python3
"""Draws one line of text into a picture and prints the text, a random one when none is given.

Usage: examples/draw_line.py PICTURE.png [TEXT]
"""

import sys

import ocr_line


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: draw_line.py PICTURE.png [TEXT]")
    text = sys.argv[2] if len(sys.argv) == 3 else ocr_line.random_text()
    ocr_line.draw(text).save(sys.argv[1])
    print(text)


if __name__ == "__main__":
    main()

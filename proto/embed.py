#!/usr/bin/env python3
"""Writes a file as a C array: embed.py INPUT OUTPUT NAME HEADER."""
import sys


def main():
    source, target, name, header = sys.argv[1:]
    with open(source, "rb") as file:
        content = file.read()
    rows = [", ".join(str(byte) for byte in content[at:at + 24]) for at in range(0, len(content), 24)]
    with open(target, "w", encoding="ascii") as file:
        file.write(f'#include "{header}"\n\nconst uint8_t {name}[] = {{\n    ' + ",\n    ".join(rows)
                   + f"}};\nconst size_t {name}_len = sizeof({name});\n")


if __name__ == "__main__":
    main()

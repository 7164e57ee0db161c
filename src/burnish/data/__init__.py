"""Files: what people bring, read row by row, refused with file, line, found and expected."""

"""`python -m hgmem`, the same as `hgmem`."""

from hgmem.cli import main

if __name__ == "__main__":
    main()

"""``python -m exactshap`` is the same as the command ``exactshap``."""

from exactshap.cli import main

if __name__ == "__main__":
    main()

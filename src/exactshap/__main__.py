"""Run the command ``exactshap`` as ``python -m exactshap``."""

from exactshap.cli import main

if __name__ == "__main__":
    main()

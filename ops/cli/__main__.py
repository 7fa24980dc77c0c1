"""`python -m ops.cli`, for children that are started with this very interpreter."""

from ops.cli.main import main

if __name__ == "__main__":
    main()

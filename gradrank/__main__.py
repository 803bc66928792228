"""``python -m gradrank`` is the command ``gradrank``."""

from gradrank.cli.main import run

if __name__ == "__main__":
    run()

"""`python -m hiresvlm`."""

from hiresvlm.cli import main

if __name__ == "__main__":
    main()

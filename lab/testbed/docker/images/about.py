"""What the lab's image does without a command: it says what it can run."""

import lab

TEXT = f"""\
The image of blackhole-lab {lab.__version__}. Its command is a module of the lab and that module's arguments:

  lab.control.serve --help            the router's controller, with its HTTP API
  lab.programs.client HOST PORT       the lab's own client
  lab.programs.server PORT            the lab's own server
  lab.testbed.docker.inner.route --help     sends a container's packets through the router

`lab run --backend docker` and compose.yaml start the containers that belong together.
"""

if __name__ == "__main__":
    print(TEXT, end="")  # noqa: T201 - its one purpose

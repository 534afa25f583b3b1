"""What an agent does all day: runs a program, reads its error, repairs it, runs it again.

Run it from the repository; the sandbox is the directory for temporary files:

    bridge-daemon run --sandbox "${TMPDIR:-/tmp}" -- python3 examples/agent.py
"""

import sys

from vscode_bridge import BridgeError
from vscode_bridge.sandbox import Sandbox

PROGRAM = """\
def mean(numbers):
    return sum(numbers) / len(number)


print("mean:", mean([1, 2, 6]))
"""


def main() -> int:
    with Sandbox() as sandbox:
        shell = sandbox.create_shell()
        place = shell.run("mktemp -d -p . agent-XXXXXX").text
        try:
            sandbox.write(f"{place}/mean.py", PROGRAM)
            shell.run(f"cd {place}")
            first = shell.run("python3 mean.py")
            print("exit code", first.exit_code, "and", first.text.splitlines()[-1])
            for found in sandbox.grep("len(number)", place, literal=True):
                print(f"{found.path}:{found.line}:{found.text}")
            sandbox.replace(f"{place}/mean.py", "len(number)", "len(numbers)")
            second = shell.run("python3 mean.py", on_output=lambda text: print(text, end=""))
            print("exit code", second.exit_code)
        finally:
            shell.close()
            sandbox.remove(place, recursive=True)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BridgeError as error:
        sys.exit(f"agent.py: {error}")

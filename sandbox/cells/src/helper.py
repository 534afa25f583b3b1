"""Runs one IPython kernel for the sandbox; speaks JSON lines on its standard input and output.

Requests: {"do": "execute", "cell": N, "code": TEXT, "cwd": BYTES or null}, {"do": "interrupt"} and
{"do": "restart", "environment": [[BYTES, BYTES]...] or null}. Without an environment, a new kernel
gets the former kernel's, and the first one gets the helper's. A closed input means that the owner
is gone, for whatever reason: then this program ends, with the kernel and everything it has started.

Events: "ready" after each start of a kernel, "output" and "done" for a cell, "died" when the kernel
ended by itself (another is then started), and "failed" as the last event. Long texts are sent as
several outputs, so that the owner can keep a part; an output that is too large to send is replaced
by "omitted".

The owner sends nothing before "ready", and one request at a time except for interrupts. The owner
enforces timeouts and size limits and decides what a cell's end means.
"""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import sys

import zmq
import zmq.asyncio
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager

# PR_SET_PDEATHSIG: the kernel dies with this process even if this process is killed.
KERNEL = """
import ctypes, os, signal, sys, types
prelude = ""
paths = ()
PR_SET_PDEATHSIG = 1
ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
if os.getppid() != int(os.environ["JPY_PARENT_PID"]):
    sys.exit("the owner is gone")
# A file in the working directory must not replace one of the kernel's modules. They are in the
# helper's path, which may come from variables that cells do not have.
sys.path[:] = [entry for entry in sys.path if entry]
sys.path += [entry for entry in paths if entry not in sys.path]
import zmq
from ipykernel.kernelapp import IPKernelApp
class Kernel(IPKernelApp):
    def init_iopub(self, context):
        # The default queue of 1000 messages drops the rest, even the end of the cell.
        context.setsockopt(zmq.SNDHWM, 0)
        super().init_iopub(context)
    def init_code(self):
        if prelude:
            module = types.ModuleType("prelude")
            exec(compile(prelude, "prelude", "exec"), vars(module))
            self.shell.push({name: vars(module)[name] for name in module.__all__}, False)
        super().init_code()
Kernel.launch_instance()
"""

OPTIONS = [
    # Programs read the tracebacks, so no colours.
    "--InteractiveShell.colors=NoColor",
    # Cells do not belong in anybody's history file.
    "--HistoryManager.enabled=False",
]

# How many seconds a new kernel may take to answer, and the interval between two attempts.
START_LIMIT = 60
RETRY_INTERVAL = 1
# The longest line to the owner in bytes, and the most characters of a text in one output.
MAX_LINE = 32 << 20
MAX_PIECE = 256 << 10


class OnlyOurKernel(KernelSpecManager):
    """Knows only our kernel, whatever others are installed."""

    prelude = ""

    def get_kernel_spec(self, kernel_name):
        code = KERNEL.replace('prelude = ""', f"prelude = {self.prelude!r}", 1)
        code = code.replace("paths = ()", f"paths = {sys.path!r}", 1)
        program = [sys.executable, "-Xfrozen_modules=off", "-c", code]
        argv = [*program, "-f", "{connection_file}", *OPTIONS]
        return KernelSpec(argv=argv, display_name="sandbox", language="python")


class Helper:
    def __init__(self, directory, cwd, mark, transport, events, *, prelude):
        self.cwd = cwd
        self.mark = mark
        self.events = events
        # No limit on our side of the output queue either; see init_iopub.
        context = zmq.asyncio.Context()
        context.setsockopt(zmq.RCVHWM, 0)
        spec = OnlyOurKernel()
        spec.prelude = prelude
        # By default Unix sockets in a private directory: no port that others could find.
        self.manager = AsyncKernelManager(
            kernel_spec_manager=spec,
            transport=transport,
            connection_file=os.path.join(directory, "kernel.json"),
            context=context,
            shutdown_wait_time=2,
        )
        self.client = None
        # A pidfd of the kernel's process, while the kernel is up.
        self.death = None
        self.tasks = set()
        self.failure = None
        # The kernel's directory as far as we have set it.
        self.given_cwd = cwd
        # The running cell: its number, the id of its request, and the messages that are still
        # missing.
        self.cell = None
        self.request = None
        self.missing = set()
        # Ids of the requests by which get_ready finds out whether the kernel answers.
        self.probes = set()
        # Futures by the reply that they wait for.
        self.replies = {}

    def send_event(self, event, **fields):
        line = json.dumps({"event": event, **fields}, ensure_ascii=False).encode("utf-8", "replace")
        if len(line) > MAX_LINE:
            fields["output"] = {"omitted": {"bytes": len(line)}}
            line = json.dumps({"event": event, **fields}).encode()
        self.events.write(line + b"\n")
        self.events.flush()

    async def start(self, environment):
        await self.manager.start_kernel(cwd=os.fsdecode(self.cwd), **launch(environment))
        self.client = self.manager.client()
        self.client.start_channels(hb=False, stdin=False)
        self.background(self.pump_outputs())
        self.background(self.pump_replies())
        await self.get_ready()

    async def get_ready(self):
        """Returns when the kernel's replies and its outputs both reach us.

        A subscription to outputs takes effect at an unknown time, so a request is repeated until
        its reply and its output have both arrived, possibly from different attempts.
        """
        deadline = asyncio.get_running_loop().time() + START_LIMIT
        self.probes = set()
        traces = {self.expect("reply"), self.expect("idle")}
        while traces:
            if not await self.manager.is_alive():
                raise RuntimeError("the kernel ended while it was starting")
            if asyncio.get_running_loop().time() > deadline:
                raise RuntimeError(f"the kernel did not answer within {START_LIMIT} s")
            self.probes.add(self.after_send(self.client.kernel_info()))
            _, traces = await asyncio.wait(traces, timeout=RETRY_INTERVAL)
        self.watch_for_death()
        self.send_event("ready")

    def after_send(self, request):
        """Must be called with each request, so that no reply is missed.

        The client sends without the asyncio socket knowing. If a reply arrives at that moment, the
        socket does not notice it, nor later ones; reading its events makes it check.
        """
        self.client.shell_channel.socket.get(zmq.EVENTS)
        return request

    def expect(self, key):
        self.replies[key] = asyncio.get_running_loop().create_future()
        return self.replies[key]

    def settle(self, key, value):
        future = self.replies.pop(key, None)
        if future and not future.done():
            future.set_result(value)

    async def execute(self, cell, code, cwd):
        self.cell = cell
        if self.death is None:
            # The kernel died while the request was on its way.
            self.finish("died")
            return
        if cwd is not None and bytes(cwd) != self.given_cwd:
            await self.change_directory(bytes(cwd))
            if self.cell != cell:
                return
        self.request = self.after_send(self.client.execute(code, allow_stdin=False))
        self.missing = {"reply", "idle"}
        self.status, self.count = "ok", None

    async def change_directory(self, cwd):
        code = f"__import__('os').chdir({cwd!r})"
        request = self.client.execute(code, silent=True, store_history=False, allow_stdin=False)
        reply = await self.expect(self.after_send(request))
        if reply["status"] == "ok":
            self.given_cwd = cwd
        else:
            reason = f"{reply.get('ename')}: {reply.get('evalue')}"
            self.finish("no-directory", reason=reason)

    def finish(self, status, **fields):
        if self.cell is not None:
            cell, self.cell, self.request = self.cell, None, None
            self.send_event("done", cell=cell, status=status, **fields)

    def received(self, part):
        self.missing.discard(part)
        if not self.missing:
            self.finish(self.status, count=self.count)

    async def pump_outputs(self):
        while True:
            message = await self.client.get_iopub_msg()
            parent = message["parent_header"].get("msg_id")
            kind, content = message["msg_type"], message["content"]
            if kind == "status" and content["execution_state"] == "idle":
                if parent in self.probes:
                    self.settle("idle", None)
                if parent == self.request:
                    self.received("idle")
            # Also output of threads of earlier cells: it has no better place than the running cell.
            elif self.request is not None and parent is not None:
                for output in describe(kind, content):
                    self.send_event("output", cell=self.cell, output=output)

    async def pump_replies(self):
        while True:
            message = await self.client.get_shell_msg()
            parent, content = message["parent_header"].get("msg_id"), message["content"]
            self.settle("reply" if parent in self.probes else parent, content)
            if parent is not None and parent == self.request:
                self.status, self.count = content["status"], content.get("execution_count")
                self.received("reply")

    def watch_for_death(self):
        self.death = os.pidfd_open(self.manager.provisioner.pid)
        asyncio.get_running_loop().add_reader(self.death, lambda: self.background(self.died()))

    def stop_watching(self):
        if self.death is not None:
            asyncio.get_running_loop().remove_reader(self.death)
            os.close(self.death)
            self.death = None

    async def died(self):
        if self.death is None:
            return
        self.stop_watching()
        self.abort_cell("died")
        self.send_event("died")
        await self.start_again(None)

    async def restart(self, environment):
        self.stop_watching()
        self.abort_cell("restarted")
        await self.start_again(environment)

    def abort_cell(self, status):
        for key in list(self.replies):
            self.settle(key, {"status": "aborted"})
        self.finish(status)

    async def start_again(self, environment):
        self.end_processes()
        await self.manager.restart_kernel(now=True, **launch(environment))
        self.given_cwd = self.cwd
        await self.get_ready()

    async def shut_down(self):
        self.stop_watching()
        if self.client is not None:
            if self.cell is not None:
                await self.interrupt()
            await self.manager.shutdown_kernel()
        self.end_processes()

    async def interrupt(self):
        # The kernel may have died just now.
        with contextlib.suppress(RuntimeError):
            await self.manager.interrupt_kernel()

    def end_processes(self):
        """Ends all processes that cells have started; their environment contains our mark."""
        own = {os.getpid(), self.manager.provisioner and self.manager.provisioner.pid}
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{name}/environ", "rb") as file:
                    if self.mark in file.read().split(b"\0") and int(name) not in own:
                        os.kill(int(name), signal.SIGKILL)
            except OSError:
                pass  # it has ended, or belongs to another user

    def background(self, work):
        """Runs a coroutine beside serve(); if it fails, serve() fails."""
        task = asyncio.ensure_future(work)
        self.tasks.add(task)
        task.add_done_callback(self.ended)

    def ended(self, task):
        self.tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not self.failure.done():
            self.failure.set_exception(error)

    async def serve(self, requests, environment):
        self.failure = asyncio.get_running_loop().create_future()
        self.background(self.start(environment))
        while True:
            reading = asyncio.ensure_future(requests.readline())
            await asyncio.wait([reading, self.failure], return_when=asyncio.FIRST_COMPLETED)
            if self.failure.done():
                self.failure.result()
            line = reading.result()
            if not line:
                return
            request = json.loads(line)
            what = request.pop("do")
            if what == "interrupt":
                await self.interrupt()
            elif what == "restart":
                self.background(self.restart(**request))
            else:
                self.background(self.execute(**request))


def launch(environment):
    """The manager's arguments to start a kernel with this environment."""
    if environment is None:
        return {}
    decoded = (map(os.fsdecode, map(bytes, variable)) for variable in environment)
    return {"env": dict(decoded)}


def describe(kind, content):
    """Converts an output message to outputs for the owner; none if the kind is not known."""
    if kind == "stream":
        for text in cut(content["text"]):
            yield {"stream": {"name": content["name"], "text": text}}
    elif kind in ("execute_result", "display_data", "update_display_data"):
        data = content["data"]
        first, *rest = cut(data.get("text/plain", ""))
        yield {"display": {"data": {**data, "text/plain": first} if rest else data}}
        for text in rest:
            yield {"display": {"data": {"text/plain": text}}}
    elif kind == "error":
        value, traceback = content["evalue"], content["traceback"]
        if sum(map(len, traceback)) > MAX_PIECE:
            value, traceback = shorten(value), [shorten("\n".join(traceback))]
        yield {"error": {"ename": content["ename"], "evalue": value, "traceback": traceback}}


def cut(text):
    return [text[start : start + MAX_PIECE] for start in range(0, len(text), MAX_PIECE)] or [text]


def shorten(text):
    """Keeps both ends, which identify an exception and its traceback."""
    end = MAX_PIECE // 4
    omitted = len(text) - 2 * end
    if omitted <= 0:
        return text
    return f"{text[:end]}\n[{omitted} characters were omitted here.]\n{text[-end:]}"


async def main(environment, arguments):
    directory, cwd, mark, transport, *optional = arguments
    prelude = optional[0] if optional else ""
    # The kernel inherits our file descriptors, and must not write to the pipe to the owner.
    events = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    requests = asyncio.StreamReader(limit=1 << 30)
    protocol = asyncio.StreamReaderProtocol(requests)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, os.fdopen(0, "rb"))
    cwd, mark = os.fsencode(cwd), os.fsencode(mark)
    helper = Helper(directory, cwd, mark, transport, events, prelude=prelude)
    try:
        await helper.serve(requests, environment)
    except Exception as error:
        # The owner may be gone.
        with contextlib.suppress(OSError):
            helper.send_event("failed", reason=f"{type(error).__name__}: {error}")
    finally:
        await helper.shut_down()
        shutil.rmtree(directory, ignore_errors=True)


# The owner passes our arguments like those of a program, and sends the environment with this text.
asyncio.run(main(environment, sys.argv[1:]))  # noqa: F821

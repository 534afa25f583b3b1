"""Methods that are written once, for blocking code and for asyncio.

``@twin`` makes such a method from a coroutine that awaits only requests. In an ``Asynchronous``
class, requests wait on the event loop, as coroutines do. In a ``Blocking`` class, they block and
never suspend, so the coroutine ends in one step, and a plain call of the method returns its
result::

    class Methods(Twin):
        @twin
        async def size(self, path: str) -> int: ...

    class Files(Methods, BlockingTwin): ...     # files.size("a") is an int
    class AsyncFiles(Methods, AsyncTwin): ...   # await files.size("a") is one

Clients themselves are ``Blocking`` or ``Asynchronous``; a ``Twin`` uses a client.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import wraps
from queue import SimpleQueue
from typing import (
    TYPE_CHECKING,
    Any,
    Awaitable,
    Callable,
    Coroutine,
    Dict,
    Generic,
    Mapping,
    Optional,
    Tuple,
    TypeVar,
    overload,
)

from . import _protocol
from ._call import Call, streamed
from ._context import AsyncContext, BlockingContext
from ._exceptions import BridgeError
from ._route import Route

T = TypeVar("T")

if TYPE_CHECKING:
    from typing_extensions import Concatenate, ParamSpec

    from ._async_client import AsyncClient
    from ._client import Client

    P = ParamSpec("P")
else:
    P = TypeVar("P")  # Python 3.9 has no ParamSpec; only type checkers use this


class Shared(ABC):
    """The base of all classes with shared methods."""

    @abstractmethod
    async def _request(
        self, method: str, params: Mapping[str, Any], timeout: Optional[float] = None
    ) -> Any:
        """Calls a method of the bridge and returns its result."""


class Blocking(Shared):
    """A class whose shared methods block."""


class Asynchronous(Shared):
    """A class whose shared methods are coroutines."""


class Twin(Shared):
    """A class that offers methods of one runtime through a client."""

    _route: Route

    async def _tool(
        self, method: str, params: Mapping[str, Any], timeout: Optional[float] = None
    ) -> Dict[str, Any]:
        """Calls a method of the runtime and returns the members of its result."""
        result = await self._request(method, self._route.added_to(params), timeout)
        return _protocol.members_of(result)

    async def _follow_tool(
        self,
        method: str,
        params: Mapping[str, Any],
        on_progress: Callable[[Any], Awaitable[None]],
        timeout: Optional[float] = None,
    ) -> Dict[str, Any]:
        """Calls a method of the runtime, as ``_follow`` does."""
        result = await self._follow(method, self._route.added_to(params), on_progress, timeout)
        return _protocol.members_of(result)

    async def _follow(
        self,
        method: str,
        params: Mapping[str, Any],
        on_progress: Callable[[Any], Awaitable[None]],
        timeout: Optional[float] = None,
    ) -> Any:
        """Calls a method, passes on its progress in order, and then returns the result.

        If an exception ends this early, the request is cancelled.
        """
        call, arrivals = self._begin(method, params, timeout)
        try:
            last, value = await self._next(arrivals)
            while not last:
                await on_progress(value)
                last, value = await self._next(arrivals)
        except BaseException:
            self._cancel(call)
            raise
        if isinstance(value, BridgeError):
            raise value
        return value

    @abstractmethod
    def _begin(
        self, method: str, params: Mapping[str, Any], timeout: Optional[float]
    ) -> Tuple[Call, Any]:
        """Sends a request. The second value is the queue for progress and answer."""

    @abstractmethod
    async def _next(self, arrivals: Any) -> Tuple[bool, Any]:
        """The next item of that queue: whether it is the last, and its value."""

    @abstractmethod
    def _cancel(self, call: Call) -> None: ...


class BlockingTwin(Twin, Blocking):
    """A twin for blocking code."""

    def __init__(self, client: Client, route: Route) -> None:
        self._client = client
        self._route = route

    async def _request(
        self, method: str, params: Mapping[str, Any], timeout: Optional[float] = None
    ) -> Any:
        return self._client.request(method, params, timeout)

    def _begin(
        self, method: str, params: Mapping[str, Any], timeout: Optional[float]
    ) -> Tuple[Call, Any]:
        arrivals: SimpleQueue[Tuple[bool, Any]] = SimpleQueue()
        call = streamed(method, params, timeout, arrivals.put)
        self._client._start(call)
        return call, arrivals

    async def _next(self, arrivals: SimpleQueue[Tuple[bool, Any]]) -> Tuple[bool, Any]:
        return arrivals.get()

    def _cancel(self, call: Call) -> None:
        self._client._cancel(call)


class AsyncTwin(Twin, Asynchronous):
    """A twin for asyncio."""

    def __init__(self, client: AsyncClient, route: Route) -> None:
        self._client = client
        self._route = route

    async def _request(
        self, method: str, params: Mapping[str, Any], timeout: Optional[float] = None
    ) -> Any:
        return await self._client.request(method, params, timeout)

    def _begin(
        self, method: str, params: Mapping[str, Any], timeout: Optional[float]
    ) -> Tuple[Call, Any]:
        from asyncio import Queue

        arrivals: Queue[Tuple[bool, Any]] = Queue()
        call = streamed(method, params, timeout, arrivals.put_nowait)
        self._client._start(call)
        return call, arrivals

    async def _next(self, arrivals: Any) -> Tuple[bool, Any]:
        last, value = await arrivals.get()
        return last, value

    def _cancel(self, call: Call) -> None:
        self._client._cancel(call)


class BlockingConnected(BlockingTwin, BlockingContext):
    """A twin that opens its own connection unless it is given one."""

    def __init__(self, client: Optional[Client], route: Route) -> None:
        from ._client import Client

        super().__init__(client or Client(), route)
        self._owns_client = client is None

    def _leave(self) -> None:
        if self._owns_client:
            self._client.close()


class AsyncConnected(AsyncTwin, AsyncContext):
    """A twin for asyncio that opens its own connection unless it is given one."""

    def __init__(self, client: Optional[AsyncClient], route: Route) -> None:
        from ._async_client import AsyncClient

        super().__init__(client or AsyncClient(), route)
        self._owns_client = client is None

    async def _leave(self) -> None:
        if self._owns_client:
            await self._client.close()


class twin(Generic[P, T]):  # noqa: N801 (it is used as a decorator)
    """Makes a method from a coroutine, as the description of this module says."""

    def __init__(self, function: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]) -> None:
        @wraps(function)
        def blocking(*args: Any, **kwargs: Any) -> T:
            return _in_one_step(function(*args, **kwargs))

        self._function = function
        self._blocking = blocking

    @overload
    def __get__(self, instance: Blocking, owner: Any) -> Callable[P, T]: ...

    @overload
    def __get__(
        self, instance: Asynchronous, owner: Any
    ) -> Callable[P, Coroutine[Any, Any, T]]: ...

    @overload
    def __get__(self, instance: Optional[Shared], owner: Any) -> Callable[..., Any]: ...

    def __get__(self, instance: Optional[Shared], owner: Any) -> Callable[..., Any]:
        function: Any = self._blocking if issubclass(owner, Blocking) else self._function
        bound: Callable[..., Any] = function.__get__(instance, owner)
        return bound


def _in_one_step(coroutine: Coroutine[Any, Any, T]) -> T:
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    coroutine.close()
    raise AssertionError("a blocking method awaited something other than a request")

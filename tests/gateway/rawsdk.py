"""The SDK as it comes, asked in the documented way and in ours."""

from openai import AsyncOpenAI, AsyncStream
from openai.types.chat import ChatCompletionChunk


async def typed(sdk: AsyncOpenAI, chunks: list[ChatCompletionChunk]) -> None:
    """Collect the chunks of the documented method; what it raises comes through."""
    stream = await sdk.chat.completions.create(
        model="m", messages=[{"role": "user", "content": "hi"}], stream=True
    )
    async with stream:
        async for each in stream:
            chunks.append(each)  # noqa: PERF401 - kept when the stream raises


async def opened(sdk: AsyncOpenAI) -> AsyncStream[object]:
    """Open a stream in the way our client does."""
    return await sdk.post(
        "/chat/completions",
        body={"model": "m", "messages": [], "stream": True},
        cast_to=object,
        stream=True,
        stream_cls=AsyncStream[object],
        options={"stream_mode": "events", "headers": {"accept": "text/event-stream"}},
    )


async def plain(sdk: AsyncOpenAI, chunks: list[object]) -> None:
    """Collect the chunks of such a stream; what it raises comes through."""
    async with await opened(sdk) as stream:
        async for each in stream:
            chunks.append(each)  # noqa: PERF401 - kept when the stream raises

"""The stock OpenAI client, unmodified: sync, async, streaming, and its errors."""

import asyncio

import openai
import pytest

MODEL = "default"
ASK = [{"role": "user", "content": "What is the capital of France?"}]


def test_chat(client):
    reply = client.chat.completions.create(model=MODEL, messages=ASK, temperature=0, max_tokens=24)
    assert reply.choices[0].message.content
    assert reply.choices[0].finish_reason in ("stop", "length")
    assert reply.choices[0].message.role == "assistant"
    assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens


def test_stream_equals_the_whole(client):
    request = dict(model=MODEL, messages=ASK, temperature=0, max_tokens=32)
    whole = client.chat.completions.create(**request)
    stream = client.chat.completions.create(**request, stream=True, stream_options={"include_usage": True})
    text, reasons, usage = "", [], None
    for chunk in stream:
        if chunk.usage:
            assert chunk.choices == []
            usage = chunk.usage
        for choice in chunk.choices:
            text += choice.delta.content or ""
            reasons += [choice.finish_reason] if choice.finish_reason else []
    assert text == whole.choices[0].message.content
    assert reasons == [whole.choices[0].finish_reason]
    assert usage.completion_tokens == whole.usage.completion_tokens
    assert usage.prompt_tokens == whole.usage.prompt_tokens


def test_streaming_helper(client):
    """It refuses an answer that was cut by its length, so this one ends at a stop string."""
    request = dict(model=MODEL, messages=ASK, temperature=0, max_tokens=100, stop=[" "])
    with client.chat.completions.stream(**request) as stream:
        for _ in stream:
            pass
        final = stream.get_final_completion()
    assert final.choices[0].message.content
    assert final.choices[0].finish_reason == "stop"


def test_many_at_once(async_client):
    async def one(n):
        messages = [{"role": "user", "content": f"Say the number {n}."}]
        stream = await async_client.chat.completions.create(
            model=MODEL, messages=messages, temperature=0, max_tokens=12, stream=True
        )
        return "".join([c.choices[0].delta.content or "" async for c in stream if c.choices])

    async def all_of_them():
        async with async_client:
            return await asyncio.gather(*(one(n) for n in range(8)))

    assert all(asyncio.run(all_of_them()))


def test_choices_and_seed(client):
    request = dict(model=MODEL, messages=ASK, n=3, seed=7, temperature=1.2, max_tokens=24)
    first = [c.message.content for c in client.chat.completions.create(**request).choices]
    again = [c.message.content for c in client.chat.completions.create(**request).choices]
    assert first == again
    assert len(set(first)) == 3


def test_logprobs(client):
    reply = client.chat.completions.create(
        model=MODEL, messages=ASK, temperature=0, max_tokens=8, logprobs=True, top_logprobs=3
    )
    tokens = reply.choices[0].logprobs.content
    assert "".join(t.token for t in tokens) == reply.choices[0].message.content
    for token in tokens:
        assert len(token.top_logprobs) == 3
        assert token.top_logprobs[0].logprob == token.logprob <= 0
        assert bytes(token.bytes).decode() == token.token


def test_stop(client):
    request = dict(model=MODEL, messages=ASK, temperature=0, max_tokens=24)
    whole = client.chat.completions.create(**request).choices[0].message.content
    stop = whole[4:10]
    cut = client.chat.completions.create(**request, stop=[stop]).choices[0]
    assert cut.message.content == whole[: whole.index(stop)]
    assert cut.finish_reason == "stop"


def test_completions(client):
    reply = client.completions.create(model=MODEL, prompt="Once upon a time", temperature=0, max_tokens=12)
    assert reply.choices[0].text
    stream = client.completions.create(
        model=MODEL, prompt="Once upon a time", temperature=0, max_tokens=12, stream=True
    )
    assert "".join(c.choices[0].text for c in stream) == reply.choices[0].text


def test_models(client):
    listed = client.models.list().data
    assert client.models.retrieve(listed[0].id).id == listed[0].id


@pytest.mark.parametrize(
    "change, param",
    [
        (dict(messages=[]), "messages"),
        (dict(messages=[{"role": "wizard", "content": "x"}]), "messages[0].role"),
        (dict(temperature=3), "temperature"),
        (dict(max_tokens=0), "max_tokens"),
        (dict(tools=[{"type": "function", "function": {"name": "f", "parameters": {}}}]), "tools"),
    ],
)
def test_bad_requests(client, change, param):
    with pytest.raises(openai.BadRequestError) as raised:
        client.chat.completions.create(**(dict(model=MODEL, messages=ASK) | change))
    assert raised.value.param == param
    assert raised.value.type == "invalid_request_error"


def test_wrong_key_and_model(base_url, client):
    stranger = openai.OpenAI(base_url=base_url, api_key="sk-wrong", max_retries=0)
    with pytest.raises(openai.AuthenticationError):
        stranger.models.list()
    with pytest.raises(openai.NotFoundError):
        client.chat.completions.create(model="gpt-none", messages=ASK)


def test_context_overflow(client):
    with pytest.raises(openai.BadRequestError) as raised:
        client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "word " * 9000}])
    assert raised.value.code == "context_length_exceeded"

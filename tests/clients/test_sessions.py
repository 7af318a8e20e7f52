"""A dialog with the stock OpenAI client: the session is an extra field, and only what is new is sent."""

import json
import urllib.request

MODEL = "default"


def say(client, session, text, **more):
    return client.chat.completions.create(
        model=MODEL,
        messages=[{"role": "user", "content": text}],
        temperature=0,
        max_tokens=16,
        extra_body={"session": session},
        **more,
    )


def shown(base_url, path):
    request = urllib.request.Request(f"{base_url}/{path}", headers={"authorization": "Bearer sk-test-key-1"})
    with urllib.request.urlopen(request) as reply:
        return json.load(reply)


def test_the_host_remembers(client, base_url):
    first = say(client, "remembers", "My name is Ada.")
    chunks = list(say(client, "remembers", "What is my name?", stream=True))
    streamed = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    session = shown(base_url, "sessions/remembers")
    said = [(message["role"], message["content"]) for message in session["messages"]]
    assert said == [
        ("user", "My name is Ada."),
        ("assistant", first.choices[0].message.content),
        ("user", "What is my name?"),
        ("assistant", streamed),
    ]
    assert session["turns"] == 2


def test_what_was_computed_is_not_computed_again(client):
    text = "Tell me of the river that runs through the old town, and of its bridges. " * 8
    say(client, "cached", text)
    later = say(client, "cached", "And then?")
    assert later.usage.prompt_tokens_details.cached_tokens > 100
    other = say(client, "other", "And then?")
    # What the template puts before every dialog is the same for all.
    assert other.usage.prompt_tokens_details.cached_tokens < 32


def test_the_raw_response_names_the_turn(client):
    raw = client.chat.completions.with_raw_response.create(
        model=MODEL,
        messages=[{"role": "user", "content": "hello"}],
        max_tokens=4,
        extra_body={"session": "named"},
    )
    assert raw.headers["x-jackfield-session"] == "named;turn=1"

"""What each practice model plays: functions from an `Ask` to the steps of its answer.

A script decides from the request alone and says in its own text what is about to
happen, so that somebody who meets the ending for the first time knows what they see.
"""

import json

from threads.practice import texts
from threads.practice.asks import Ask
from threads.practice.steps import (
    Abort,
    Answer,
    CallTools,
    Fail,
    Finish,
    Frame,
    NextTurn,
    Play,
    Say,
    Silence,
    ToolCall,
)

UPSTREAM = "Practice Upstream"
_PRACTISED_TOOLS = {
    "current_time": {"timezone": "UTC"},
    "calculator": {"expression": "17 * 23"},
}


def opening_of(ask: Ask) -> str:
    """The first words of what the person said, short enough to quote in a sentence."""
    words = ask.last_words.split()
    quoted = " ".join(words[:8])
    if len(quoted) > 60:
        return quoted[:60] + "…"
    return quoted + ("…" if len(words) > 8 else "") or "nothing at all"


def _half(ask: Ask, warning: str) -> Say:
    """An answer that is going to be interrupted; the warning ends where it stops."""
    return Say(f'You wrote "{opening_of(ask)}". I am a practice model. {warning}')


# --- Answers that end well -----------------------------------------------------------


def steady(ask: Ask) -> Play:
    return Say(texts.STEADY.format(opening=opening_of(ask))), Finish("stop")


def markdown(ask: Ask) -> Play:
    text = texts.MARKDOWN.format(opening=opening_of(ask))
    return Say(text, tokens_per_second=80), Finish("stop")


def reasoning(ask: Ask) -> Play:
    opening = opening_of(ask)
    return (
        Say(texts.REASONING.format(opening=opening), reasoning=True),
        Say(texts.REASONED.format(opening=opening)),
        Finish("stop"),
    )


def slow(ask: Ask) -> Play:
    return Say(texts.SLOW, tokens_per_second=2), Finish("stop")


def long(ask: Ask) -> Play:
    text = texts.long_text(opening_of(ask))
    return Say(text, tokens_per_second=100), Finish("stop")


def tools(ask: Ask) -> Play:
    if ask.tool_results:
        return Say(f"Both tools have answered. {_results_of(ask)}"), Finish("stop")
    calls = _calls_for(ask)
    if calls.calls:
        return (
            Say("Let me ask two tools at the same time."),
            calls,
            Finish("tool_calls"),
        )
    return Say(_no_tools(ask)), Finish("stop")


def _results_of(ask: Ask) -> str:
    said = (f"`{name}` said: {result[:300]}" for name, result in ask.tool_results)
    return "\n\n".join(("Here is what came back.", *said))


def _calls_for(ask: Ask) -> CallTools:
    return CallTools(
        tuple(
            ToolCall(f"call_practice_{name}", name, json.dumps(arguments))
            for name, arguments in _PRACTISED_TOOLS.items()
            if name in ask.tool_names
        )
    )


def _no_tools(ask: Ask) -> str:
    wanted = " and ".join(f"`{name}`" for name in _PRACTISED_TOOLS)
    if not ask.tool_names:
        return (
            "I am a practice model that calls tools, but this request offered me none. "
            f"Allow tools for this thread and I shall call {wanted}."
        )
    return (
        f"I am a practice model that calls {wanted}, but this request offered me only "
        "others. Allow those two and ask again."
    )


# --- Answers that end early, and say so ----------------------------------------------


def length(ask: Ask) -> Play:
    warning = (
        "This answer has a limit on its length, as real ones have, and it is about to "
        "reach it. What you are reading is not wrong, there is just no room for the"
    )
    return _half(ask, warning), Finish("length")


def filtered(ask: Ask) -> Play:
    warning = (
        "A filter at the provider reads along while I write, and in a moment it will "
        "decide that you should not see the rest of this sentence, which is about"
    )
    return _half(ask, warning), Finish("content_filter")


def empty(_: Ask) -> Play:
    return (Finish("stop"),)


def unknown_finish(ask: Ask) -> Play:
    warning = (
        "I shall now give a reason for stopping that nobody has ever heard of. The text "
        "may be complete or it may not: there is no way to tell, and nobody should"
    )
    return _half(ask, warning), Finish("model_went_fishing")


# --- Streams that break --------------------------------------------------------------


def stall_start(_: Ask) -> Play:
    return (Silence(comments=True),)


def stall(ask: Ask) -> Play:
    warning = (
        "This answer will now fall silent in the middle of a sentence. The connection "
        "stays open and nothing more will come through it, however long you"
    )
    return _half(ask, warning), Silence()


def truncate(ask: Ask) -> Play:
    warning = (
        "This answer will stop in the middle of a sentence, as if that were its end. "
        "There will be no sign that I had finished, because I had not fin"
    )
    return (_half(ask, warning),)


def reset(ask: Ask) -> Play:
    warning = (
        "In a moment the connection between this site and me will be reset, as happens "
        "when a server in between is restarted, and you will see half of a wo"
    )
    return _half(ask, warning), Abort(reset=True)


def fault(ask: Ask) -> Play:
    warning = (
        "The provider behind me is about to fail. It will say that I stopped because of "
        "an error, and it will not say which, so all that anybody can do is"
    )
    return _half(ask, warning), Finish("error")


def error_chunk(ask: Ask) -> Play:
    warning = (
        "The provider behind me is about to fail, and the gateway will put its error "
        "into the very stream in which you are reading this sen"
    )
    return _half(ask, warning), Fail(
        502,
        "Provider returned error",
        provider_name=UPSTREAM,
        raw='{"error":{"message":"The practice machine lost its worker.","type":"server_error"}}',
    )


def error_first(_: Ask) -> Play:
    return (Fail(503, "The practice model is overloaded. Nothing was generated."),)


def blocked(_: Ask) -> Play:
    return (Fail(403, "Request blocked: PII detected"),)


def garbled(ask: Ask) -> Play:
    warning = (
        "The next thing that I send will not be readable: somewhere between me and this "
        "site the bytes are mixed up, and what should have been the rest of this"
    )
    return _half(ask, warning), Frame('{"choices":[{"delta":{"content":"sent')


def not_a_stream(_: Ask) -> Play:
    page = (
        "<!doctype html><html><head><title>Practice proxy</title></head><body>"
        "<h1>Please sign in</h1><p>This is a web page. It was sent where a stream of "
        "text was expected, as a proxy or a wrong address would do.</p></body></html>"
    )
    return Answer(200, page, content_type="text/html; charset=utf-8")


def cut_once(ask: Ask) -> Play:
    if ask.turn:
        text = (
            "This is the second try, and this time the answer is whole. The first one "
            "was cut off in the middle of a sentence. I am a practice model, and you "
            f'wrote "{opening_of(ask)}".'
        )
        return Say(text), NextTurn(0), Finish("stop")
    warning = (
        "The first time that I am asked, my answer is cut off. When the very same "
        "question comes again I answer it whole. Watch this text: it is going to be"
    )
    return _half(ask, warning), NextTurn(1)


def cut_always(ask: Ask) -> Play:
    warning = (
        "Whenever I am asked, my answer is cut off at this point. Asking again does not "
        "help. The site should say that I was cut off, and keep what I wro"
    )
    return _half(ask, warning), Abort(reset=False)


def flaky_start(ask: Ask) -> Play:
    if not ask.turn:
        return NextTurn(1), Fail(503, "The practice model is just waking up.")
    text = (
        "The first try failed before a single word had come; you are reading the "
        f'second. I am a practice model, and you wrote "{opening_of(ask)}".'
    )
    return Say(text), NextTurn(0), Finish("stop")


def tool_then_fault(ask: Ask) -> Play:
    calls = _calls_for(ask)
    if calls.calls and not ask.tool_results:
        return Say("First I ask two tools."), calls, Finish("tool_calls")
    came = _results_of(ask) if ask.tool_results else _no_tools(ask)
    warning = (
        "\n\nNow I ask for one more, and as I do the provider behind me fails. A tool "
        "has been asked for, so nothing is repeated by itself."
    )
    fault = Fail(
        502, "Provider returned error", provider_name=UPSTREAM, raw="worker lost"
    )
    return Say(came + warning), calls, fault

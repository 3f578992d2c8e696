"""The longer texts that practice models speak: a plain answer, Markdown, reasoning."""

from collections.abc import Iterator

from threads.practice.wire import tokens_of

STEADY = """\
You wrote "{opening}", and this is a practice model answering. It does not think, and it \
knows nothing about your question. It is a small program that came with the site so that \
you can see how an answer arrives before you connect a real gateway.

Most answers arrive just like this one: a few words at a time, until the model says that \
it has finished. Now and then one ends badly. The provider may fall silent while the \
connection stays open, the line may be cut in the middle of a sentence, or the gateway may \
send an error in a place where text was expected. From outside all three look alike: the \
words simply stop.

This site tells them apart. It watches how the stream ends, not only what it says, and when \
an answer ends badly it names what happened and what you can do about it. Whatever you had \
already been shown stays where it was, and an operator finds in the ledger how each try went.

Each of the other practice models shows one such ending. Pick one, ask it anything, and see \
whether you would have known what to do next. This answer, at any rate, ends as it should.\
"""

MARKDOWN = """\
# A page of Markdown

This practice model answers "{opening}" with a little of everything, so that you can see how \
**bold words**, *gentle emphasis*, `inline code` and [a link](https://commonmark.org/help/) \
look here.

## How an answer can end

1. It **finishes**, and says so.
2. It is cut short:
   - by the network,
   - by a limit on its length,
   - by a filter at the provider.
3. It never begins.

| What you see | What happened | What helps |
|:-------------|:--------------|:-----------|
| A full answer | The stream ended with proof | Nothing to do |
| Half a sentence | The connection closed early | Submit again |
| No words at all | The provider never answered | Submit again, or another model |

## Some code

```python
from dataclasses import dataclass


@dataclass(frozen=True)
class Ending:
    name: str
    proven: bool = False

    def sentence(self) -> str:
        # An ending without proof is never called complete.
        return "All there." if self.proven else f"This answer was {{self.name}}."


print(Ending("truncated").sentence())
```

Asking again from a terminal:

```bash
python manage.py ask --model practice/steady "Why do streams end badly?"
```

> A stream that stops is not yet a stream that ended.

### What to try next

- Choose `practice/truncate` and read what stands under an answer that was cut.
- Choose `practice/tools` to see two tools run side by side.

That is all there is on this page.\
"""

REASONING = """\
The person wrote "{opening}". Let me think about what a useful reply would be. I am a \
practice model, so I have no knowledge to offer, but I can show what thinking looks like \
while it happens. First, I should say plainly what I am. Second, I should explain that these \
lines are reasoning: they arrive before the answer, and they prove that the provider is still \
at work even though no word of the answer has been written. Third, I should keep the answer \
short, since the thinking is what matters here. A reader may want to fold this part away, or \
to read along. Both are fine. A model that thinks for minutes is not a model that has fallen \
silent, and a site should be able to tell the two apart. I believe I have everything that I \
need now. Time to answer.\
"""

REASONED = """\
I am a practice model, and I have just spent about four seconds "thinking" about "{opening}".

What you saw before this text is called reasoning. Some models send it ahead of the answer. \
While it arrives the site knows that the model is at work, so it does not give up on it, \
however long the first word of the answer may take.\
"""

SLOW = """\
I am a slow practice model. I write about two tokens in a second, which gives you plenty of \
time to press Stop. When you do, the site closes the connection at once, I notice and stop \
writing, and the words that had arrived stay on the page, marked as stopped by you. Nothing \
is wrong with an answer that was stopped: it is neither a fault of the provider nor of your \
request. If you do not press Stop, I shall go on in this leisurely way until I have nothing \
left to say, which will take more than a minute. There is no hurry. Perhaps open the same \
thread in a second tab, and see that the words appear in both.\
"""

_LONG_OPENING = """\
You wrote "{opening}". I am a practice model that writes a long answer, about three thousand \
tokens at a hundred in a second, so that you can scroll while it grows.\
"""

_LONG_PARAGRAPHS = (
    """\
Paragraph {number}. A long answer is read while it is still being written. The page should \
stay where the reader has put it, follow the text only while they are at the end of it, and \
never jump because a line has become longer.""",
    """\
Paragraph {number}. Every piece of text that arrives is kept as it arrives. If the connection \
were to break right here, all the paragraphs above this one would still be on the page, and \
the sentence below them would say what had happened.""",
    """\
Paragraph {number}. Work that grows with the length of the answer must grow in proportion to \
it and no faster. Otherwise the last paragraph of a long answer arrives slower than the \
first, and the page grows warm in the reader's hands.""",
)

_LONG_TOKENS = 3000


def long_text(opening: str) -> str:
    """About 3,000 tokens of numbered paragraphs."""
    parts = [_LONG_OPENING.format(opening=opening)]
    written = 0
    for paragraph in _numbered_paragraphs():
        parts.append(paragraph)
        written += sum(1 for _ in tokens_of(paragraph))
        if written >= _LONG_TOKENS:
            break
    return "\n\n".join(parts)


def _numbered_paragraphs() -> Iterator[str]:
    number = 1
    while True:
        for paragraph in _LONG_PARAGRAPHS:
            yield paragraph.format(number=number)
            number += 1

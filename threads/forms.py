"""What people send: messages, titles, and how they sign up."""

import json
from contextlib import suppress
from typing import Any

from django import forms
from django.contrib.auth import get_user_model
from django.contrib.auth.forms import AuthenticationForm, BaseUserCreationForm
from django.utils.formats import number_format
from django.utils.translation import gettext_lazy as _

from threads.choices import Choice, offered_choice
from threads.models import Thread, ToolRun
from threads.models.ledger import ARGUMENTS_LENGTH

LONGEST_MESSAGE = 100_000  # characters


class ChoiceField(forms.Field):
    """A model or a route, among those that are offered."""

    default_error_messages = {
        "invalid_choice": _("This model is not offered any more. Choose another one.")
    }

    def to_python(self, value: str | None) -> Choice | None:
        """Find what was chosen; nothing was where the value is empty."""
        if not value:
            return None
        choice = offered_choice(value)
        if choice is None:
            raise forms.ValidationError(
                self.error_messages["invalid_choice"], code="invalid_choice"
            )
        return choice


class SendingForm(forms.Form):
    """The model that shall answer, and the page's key for this one sending."""

    model = ChoiceField(required=False)
    key = forms.CharField(max_length=64, required=False)


class AgainForm(SendingForm):
    """Asking for an answer again; `confirmed` lets tools with effects run again.

    `tools` are those that stand in the way until then; of the `unknown` ones among
    them nobody knows whether they have finished.
    """

    tools: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    confirmed = forms.BooleanField(required=False)


class MessageForm(SendingForm):
    """A message."""

    prompt = forms.CharField(strip=False, required=False)

    def clean_prompt(self) -> str:
        """Require a message of a length that can be sent.

        Browsers send line breaks as CR LF; they are counted and kept as one.
        """
        prompt: str = self.cleaned_data["prompt"].replace("\r\n", "\n")
        if not prompt.strip():
            raise forms.ValidationError(_("Write a message first."), code="empty")
        if len(prompt) > LONGEST_MESSAGE:
            raise forms.ValidationError(
                _(
                    "Your message has %(length)s characters; at most %(limit)s can be "
                    "sent. Shorten it or send it in parts."
                ),
                code="too_long",
                params={
                    "length": number_format(len(prompt), force_grouping=True),
                    "limit": number_format(LONGEST_MESSAGE, force_grouping=True),
                },
            )
        return prompt.strip("\n")


class ChangeForm(MessageForm, AgainForm):
    """A message that was changed and is sent again."""


class DecisionForm(forms.Form):
    """A person's word on a tool that waits for it, and the arguments it may run with.

    `changed` are those, as they were written, where they say something else than the
    model's own.
    """

    WORDS = ("allow", "deny")

    decision = forms.ChoiceField(choices=[(word, word) for word in WORDS])
    arguments = forms.CharField(strip=False, required=False)

    def __init__(self, run: ToolRun, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.run = run

    @property
    def allows(self) -> bool:
        """Whether the tool may run."""
        return bool(self.cleaned_data["decision"] == "allow")

    @property
    def changed(self) -> str | None:
        """The arguments that the person wrote, None where they are the model's own."""
        wanted: str = self.cleaned_data["arguments"]
        with suppress(ValueError, RecursionError):
            if _canonical(wanted) == _canonical(self.run.arguments):
                return None
        return wanted

    def clean(self) -> dict[str, Any]:
        """Require arguments that can be read; what is not to run needs none."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        wanted = cleaned.get("arguments", "").replace("\r\n", "\n")
        cleaned["arguments"] = wanted
        if cleaned.get("decision") == "allow":
            self._check(wanted)
        return cleaned

    def _check(self, wanted: str) -> None:
        if self.changed is None:
            return
        if len(wanted) > ARGUMENTS_LENGTH:
            self.add_error("arguments", _("The arguments are too long. Shorten them."))
            return
        try:
            arguments = json.loads(wanted or "{}")
        except json.JSONDecodeError as error:
            words = _(
                "The arguments are not valid JSON: look at line %(line)d, column "
                "%(column)d."
            )
            values = {"line": error.lineno, "column": error.colno}
            self.add_error("arguments", forms.ValidationError(words, params=values))
            return
        except (ValueError, RecursionError):
            arguments = None
        if not isinstance(arguments, dict):
            self.add_error(
                "arguments", _("The arguments must be a JSON object, in braces.")
            )


def _canonical(arguments: str) -> str:
    """What they say, however it is written; 1 is not true, nor 1.0."""
    return json.dumps(json.loads(arguments or "{}"), sort_keys=True)


class TitleForm(forms.ModelForm[Thread]):
    """A thread's title."""

    class Meta:
        model = Thread
        fields = ["title"]


class SignInForm(AuthenticationForm):
    """Name and password, with an error that says what to do."""

    error_messages = {
        "invalid_login": _("Name and password do not match. Check both and try again."),
        "inactive": _("This account is switched off. Ask your operator."),
    }


class SignUpForm(BaseUserCreationForm[Any]):
    """A new account."""

    class Meta:
        model = get_user_model()
        fields = ("username",)

"""What people send: messages, titles, and how they sign up."""

from typing import Any

from django import forms
from django.contrib.auth import get_user_model
from django.contrib.auth.forms import AuthenticationForm, BaseUserCreationForm
from django.utils.formats import number_format
from django.utils.translation import gettext_lazy as _

from threads.choices import Choice, offered_choice
from threads.models import Thread

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

    `tools` are those that stand in the way until then.
    """

    tools: tuple[str, ...] = ()
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

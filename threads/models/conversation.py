"""Threads, their cells, the rounds that answer them, and the journal."""

from typing import TYPE_CHECKING

from django.conf import settings
from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from threads.core.answer import clean
from threads.core.faults import Condition, Ending
from threads.core.snapshot import Generation
from threads.models.catalogue import Agent, LanguageModel
from threads.models.routes import Route

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

TITLE_LENGTH = 60
LONGEST_QUERY = 200


def values_of(enum: type[Ending] | type[Condition]) -> list[tuple[str, str]]:
    """Choices by value: an enum member would write its module path into a migration."""
    return [(member.value, member.value) for member in enum]


def words_of(query: str) -> str:
    """What is looked for: bounded, and without what no text holds."""
    return clean(query).strip()[:LONGEST_QUERY]


class ThreadQuerySet(models.QuerySet["Thread"]):
    def of(self, user: "AbstractBaseUser | AnonymousUser") -> "ThreadQuerySet":
        """The threads that this person may see: their own, not deleted."""
        return self.owned_by(user.pk)

    def owned_by(self, owner_id: int | None) -> "ThreadQuerySet":
        """The same, of a person of whom only the number is known."""
        return self.filter(owner_id=owner_id, deleted_at=None)

    def containing(self, words: str) -> "ThreadQuerySet":
        """The threads with these words in their title or text, as they read now."""
        said = Cell.objects.filter(thread=OuterRef("pk"), is_current=True)
        return self.filter(Q(title__icontains=words) | Exists(said.containing(words)))


class Thread(models.Model):
    """A conversation of one person."""

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="threads"
    )
    title = models.CharField(_("title"), max_length=200, blank=True)
    agent = models.ForeignKey(Agent, models.SET_NULL, null=True, blank=True)
    model = models.ForeignKey(LanguageModel, models.SET_NULL, null=True, blank=True)
    # Chosen last; without one, the model is.
    route = models.ForeignKey(Route, models.SET_NULL, null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    updated_at = models.DateTimeField(default=timezone.now)
    # A deleted thread can be brought back until it is pruned.
    deleted_at = models.DateTimeField(null=True, blank=True)

    objects = ThreadQuerySet.as_manager()

    class Meta:
        verbose_name = _("thread")
        verbose_name_plural = _("threads")
        indexes = [
            models.Index(fields=["owner", "-updated_at"], name="thread_owner_updated")
        ]

    def __str__(self) -> str:
        return f"#{self.pk}"


class CellQuerySet(models.QuerySet["Cell"]):
    def shown(self) -> "CellQuerySet":
        """The cells of a thread as it reads now: the current versions, in order."""
        return self.filter(is_current=True).order_by("position")

    def containing(self, words: str) -> "CellQuerySet":
        """The cells with these words in their text."""
        return self.filter(text__icontains=words)


class Cell(models.Model):
    """A person's message, or one version of its answer.

    `text` and `reasoning` hold what has been folded from the journal; while the
    cell is streaming the journal runs ahead of them. The sentence stands in its
    own fields and is never part of the text (requirement B10).
    """

    class Role(models.TextChoices):
        USER = "user", _("You")
        ASSISTANT = "assistant", _("Answer")

    class Status(models.TextChoices):
        STREAMING = "streaming", _("streaming")
        DONE = "done", _("done")
        ERROR = "error", _("ended early")
        STOPPED = "stopped", _("stopped")

    thread = models.ForeignKey(Thread, models.CASCADE, related_name="cells")
    position = models.PositiveIntegerField()
    role = models.CharField(max_length=10, choices=Role)
    # An answer names its question; its versions share it, one of them current.
    question = models.ForeignKey(
        "self", models.CASCADE, null=True, blank=True, related_name="answers"
    )
    version = models.PositiveIntegerField(default=1)
    is_current = models.BooleanField(default=True)

    status = models.CharField(max_length=10, choices=Status, default=Status.DONE)
    text = models.TextField(blank=True)
    reasoning = models.TextField(blank=True)
    reasoning_ms = models.PositiveIntegerField(null=True, blank=True)
    text_generation = models.PositiveIntegerField(default=0)

    ending = models.CharField(max_length=20, blank=True, choices=values_of(Ending))
    code = models.CharField(max_length=100, blank=True)
    condition = models.CharField(
        max_length=20, blank=True, choices=values_of(Condition)
    )
    transient = models.BooleanField(default=False)
    sentence_key = models.CharField(max_length=100, blank=True)
    sentence_params = models.JSONField(default=dict, blank=True)
    # In the round's locale; shown where the viewer's language has none of its own.
    sentence = models.TextField(blank=True)
    provider_reason = models.CharField(max_length=400, blank=True)
    request_id = models.CharField(max_length=200, blank=True)

    created_at = models.DateTimeField(default=timezone.now)
    ended_at = models.DateTimeField(null=True, blank=True)

    objects = CellQuerySet.as_manager()

    class Meta:
        verbose_name = _("cell")
        verbose_name_plural = _("cells")
        constraints = [
            models.UniqueConstraint(
                fields=["thread", "position", "version"], name="cell_has_its_own_place"
            ),
            models.UniqueConstraint(
                fields=["question"],
                condition=Q(is_current=True),
                name="one_current_answer",
            ),
            models.CheckConstraint(
                condition=~Q(status="error") | (~Q(ending="") & ~Q(code="")),
                name="cell_error_names_its_ending",
            ),
            models.CheckConstraint(
                condition=Q(role="assistant", question__isnull=False)
                | Q(role="user", question__isnull=True),
                name="cell_answers_a_question",
            ),
        ]

    def __str__(self) -> str:
        return f"#{self.pk} {self.role} {self.status}"

    @property
    def folded(self) -> Generation:
        """What has been folded; the journal goes on from it.

        While nothing has been, the generation is only how far the journal has come.
        """
        number = self.text_generation if self.text or self.reasoning else 0
        return Generation(number, self.text, self.reasoning)


class Round(models.Model):
    """One answering of one user cell; at most one is under way in a thread."""

    class State(models.TextChoices):
        QUEUED = "queued", _("waiting")
        RUNNING = "running", _("running")
        # Nobody works on it: a person is to say whether a tool may run.
        ASKING = "asking", _("asking")
        DONE = "done", _("done")
        ERROR = "error", _("ended early")
        STOPPED = "stopped", _("stopped")

    ACTIVE = (State.QUEUED, State.RUNNING, State.ASKING)

    thread = models.ForeignKey(Thread, models.CASCADE, related_name="rounds")
    user_cell = models.ForeignKey(Cell, models.CASCADE, related_name="rounds")
    answer_cell = models.OneToOneField(Cell, models.CASCADE, related_name="round")
    # Of a route, the model that was asked last; `model_requested` names the first.
    model = models.ForeignKey(
        LanguageModel, models.SET_NULL, null=True, related_name="rounds"
    )
    route = models.ForeignKey(
        Route, models.SET_NULL, null=True, blank=True, related_name="rounds"
    )
    agent = models.ForeignKey(
        Agent, models.SET_NULL, null=True, blank=True, related_name="rounds"
    )
    model_requested = models.CharField(max_length=200)
    model_served = models.CharField(max_length=200, blank=True)
    locale = models.CharField(max_length=20)
    attended = models.BooleanField(default=True)
    # Nothing is shown before it is whole (requirement D19).
    is_buffered = models.BooleanField(default=False)
    # Of the oldest messages, where the model cannot read them all (F10).
    left_out = models.PositiveIntegerField(default=0)
    # One click, one round: the page sends a key of its own making.
    submission_key = models.CharField(max_length=64, null=True, blank=True)  # noqa: DJ001
    resubmitted_from = models.ForeignKey("self", models.SET_NULL, null=True, blank=True)

    state = models.CharField(max_length=10, choices=State, default=State.QUEUED)
    ending = models.CharField(max_length=20, blank=True, choices=values_of(Ending))
    code = models.CharField(max_length=100, blank=True)
    stop_requested_at = models.DateTimeField(null=True, blank=True)
    worker = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    # When it last began to wait for a worker.
    queued_at = models.DateTimeField(default=timezone.now)
    claimed_at = models.DateTimeField(null=True, blank=True)
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = _("round")
        verbose_name_plural = _("rounds")
        constraints = [
            models.UniqueConstraint(
                fields=["thread"],
                condition=Q(state__in=["queued", "running", "asking"]),
                name="one_round_at_a_time_in_a_thread",
            ),
            models.UniqueConstraint(
                fields=["thread", "submission_key"], name="one_round_for_one_submission"
            ),
            models.CheckConstraint(
                condition=~Q(state="error") | (~Q(ending="") & ~Q(code="")),
                name="round_error_names_its_ending",
            ),
            models.CheckConstraint(
                condition=Q(state__in=["queued", "running", "asking"])
                | Q(ended_at__isnull=False),
                name="round_over_has_an_end",
            ),
        ]
        indexes = [
            models.Index(
                fields=["heartbeat_at"],
                condition=Q(state__in=["queued", "running"]),
                name="round_liveness",
            )
        ]

    def __str__(self) -> str:
        return f"#{self.pk} {self.state}"


class JournalEntry(models.Model):
    """What was streamed into a cell, one row a flush; folded at the end.

    Offsets count characters (code points). Unique on cell, part, generation and
    offset: two writers of one cell cannot both succeed.
    """

    class Part(models.TextChoices):
        TEXT = "text", _("text")
        REASONING = "reasoning", _("reasoning")
        WITHDRAWAL = "withdrawal", _("withdrawal")
        RESTATED = "restated", _("text")

    cell = models.ForeignKey(Cell, models.CASCADE, related_name="journal")
    part = models.CharField(max_length=10, choices=Part, default=Part.TEXT)
    generation = models.PositiveIntegerField()
    offset = models.PositiveIntegerField()
    text = models.TextField()

    class Meta:
        verbose_name = _("journal entry")
        verbose_name_plural = _("journal entries")
        constraints = [
            models.UniqueConstraint(
                fields=["cell", "part", "generation", "offset"],
                name="journal_has_one_writer",
            )
        ]

    def __str__(self) -> str:
        return f"#{self.pk} cell {self.cell_id} {self.part} {self.generation}:{self.offset}"

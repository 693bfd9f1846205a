"""Where records go, and what is done already."""

from __future__ import annotations

from collections.abc import Sequence

from hiresvlm.datatypes import Document, Record, Status
from hiresvlm.settings import PageSettings
from hiresvlm.writers import Entry, Journal, Key, Stream, TextFiles
from hiresvlm.writers.journal import FileState

MAX_PAGES = PageSettings().max_pages
"""No document has more; a larger number in an old record is a mistake, and is looked up again."""

_WORSE = (Status.OK, Status.PARTIAL, Status.FAILED)


class Sink:
    """Journal, stream and text files behind one face. Any of them may be absent.

    `digests` are the settings digests whose records count as done: the run's own first, then those of
    other engines that `--engine auto` may have picked before. With `queries` (the same for each query of
    `ask`) a record is about a document and a query, not about a page.
    """

    def __init__(
        self,
        digests: Sequence[str],
        *,
        journal: Journal | None = None,
        stream: Stream | None = None,
        texts: TextFiles | None = None,
        retry_errors: bool = False,
        queries: Sequence[Sequence[str]] = (),
    ) -> None:
        self._digests = digests
        self._queries = queries
        self._journal = journal
        self._stream = stream
        self._texts = texts
        self._retry_errors = retry_errors
        self._page_counts: dict[tuple[str, str | None], int] = {}
        self._ambiguous: set[str] = set()
        """Documents with records of other content or settings: a text file may show those."""
        self._before: dict[str, set[str | None]] = {}
        """Key -> hashes and sources that earlier records of it have."""
        self.replaced_texts = 0
        """Text files that showed another document before."""
        self.used_other_digest = False
        """Some finished pages were made by another engine."""
        variants: dict[str, tuple[str | None, str]] = {}
        for key, entry in journal.entries.items() if journal is not None else ():
            if entry.pages is not None and entry.pages <= MAX_PAGES:
                self._page_counts[key.key, key.sha256] = entry.pages
            self._before.setdefault(key.key, set()).update((key.sha256, entry.source))
            variant = key.sha256, key.settings
            if variants.setdefault(key.key, variant) != variant:
                self._ambiguous.add(key.key)

    def known_hash(self, document: Document) -> tuple[bool, str | None]:
        """Whether a document of this name, size and time was seen before, and its hash."""
        if self._journal is None:
            return False, None
        state = document.key, FileState(document.size, document.mtime_ns, document.inode)
        return state in self._journal.hashes, self._journal.hashes.get(state)

    def page_count(self, document: Document, sha256: str | None) -> int | None:
        """Pages of a document as an earlier record says."""
        return self._page_counts.get((document.key, sha256))

    def status(self, document: Document, sha256: str | None, page: int | None) -> Status | None:
        """Status of a page that need not be done again, else None.

        With queries: the worst status of their answers.
        """
        if self._queries:
            known = [self.answered(document, sha256, number) for number in range(len(self._queries))]
            done = [status for status in known if status is not None]
            return max(done, key=_WORSE.index) if len(done) == len(known) else None
        entry = self._entry(document, sha256, page)
        if entry is None or (self._retry_errors and entry[1].status != Status.OK):
            return None
        return Status(entry[1].status)

    def answered(self, document: Document, sha256: str | None, query: int) -> Status | None:
        """Status of the answer to a query that need not be given again, else None."""
        entry = self._entry(document, sha256, None, self._queries[query])
        if entry is None or (self._retry_errors and entry[1].status != Status.OK):
            return None
        return Status(entry[1].status)

    def pending(self, document: Document, sha256: str | None) -> list[int]:
        """Numbers of the queries, from 0, that a document has no answer to yet."""
        numbers = range(len(self._queries))
        return [number for number in numbers if self.answered(document, sha256, number) is None]

    def expect(self, document: Document, pages: Sequence[int]) -> None:
        """Announce the records of a document that will be written; page 0: one for the whole."""
        if self._stream is not None:
            self._stream.expect(document.number, pages)

    def write(self, document: Document, record: Record, slot: int | None = None) -> None:
        """Write one record. Raises `OutputError` or `ReaderGone`.

        `slot` is its place among the records that were announced for the document; else its page.
        """
        if self._journal is not None:
            self._journal.append(record)
        if self._stream is not None:
            self._stream.write(document.number, record["page"] or 0 if slot is None else slot, record)

    def document_done(self, document: Document, sha256: str | None, *, changed: bool) -> None:
        """All selected pages of a document are written, now (`changed`) or in an earlier run.

        Renders its text file. Raises `OutputError`.
        """
        if self._journal is None:
            return
        state = FileState(document.size, document.mtime_ns, document.inode)
        touched = not changed and (document.key, state) not in self._journal.hashes
        pages = [None, *range(1, (self.page_count(document, sha256) or 0) + 1)]
        found = [e for page in pages if (e := self._entry(document, sha256, page)) is not None]
        for digests in self._queries:
            entry = self._entry(document, sha256, None, digests)
            found += [] if entry is None else [entry]
        if len(found) > 1 and found[0][0].page is None and not self._queries:
            del found[0]  # it could not be read once, and now it can
        if found and found[0][0].page is not None:
            for digest in self._digests:
                for known in {None, sha256}:
                    self._journal.forget(Key(document.key, known, None, digest))
        if not found:
            return
        if touched:
            self._journal.restate(found[-1][0], state)
        if self._texts is None:
            return
        newest = max(entry.finished for _, entry in found)
        if changed or document.key in self._ambiguous or not self._texts.is_newer(document, newest):
            # Another name and other content: not a folder that was moved, but another document.
            before = self._before.get(document.key)
            self.replaced_texts += before is not None and before.isdisjoint((sha256, document.source))
            self._texts.write(document, [self._journal.read(key) for key, _ in found])

    def learn(self, document: Document, sha256: str | None, pages: int) -> None:
        """Remember a page count that a probe found."""
        self._page_counts[document.key, sha256] = pages

    def sync_when_due(self) -> None:
        """Call it often; see `Journal.sync_when_due`."""
        if self._journal is not None:
            self._journal.sync_when_due()

    def finish(self, *, clean: bool) -> None:
        """The run is over; a clean one leaves the journal sorted, one record per key.

        A file that somebody removed meanwhile is written again, also when the run was interrupted.
        """
        if self._stream is not None:
            self._stream.flush()
        if self._journal is not None and (clean or not self._journal.in_place):
            self._journal.finish()

    def close(self) -> None:
        if self._journal is not None:
            self._journal.close()

    def _entry(
        self,
        document: Document,
        sha256: str | None,
        page: int | None,
        digests: Sequence[str] | None = None,
    ) -> tuple[Key, Entry] | None:
        if self._journal is None:
            return None
        for number, digest in enumerate(self._digests if digests is None else digests):
            key = Key(document.key, sha256, page, digest)
            entry = self._journal.entries.get(key)
            if entry is not None:
                self.used_other_digest |= number > 0
                return key, entry
        return None

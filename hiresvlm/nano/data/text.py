"""Random English text of the kinds that stand on documents."""

from __future__ import annotations

from hiresvlm.nano.data import words as w
from hiresvlm.nano.data.values import Values


class Writer(Values):
    """Sentences, headings, labels and lines beside the values."""

    def noun_phrase(self) -> list[str]:
        """A few words around a noun."""
        words = [self.rng.choice(w.DETERMINERS)] if self.chance(0.7) else []
        if self.chance(0.4):
            words.append(self._natural(w.ADJECTIVES) if self.chance(0.85) else self.rare())
        words.append(self._natural(w.NOUNS) if self.chance(0.85) else self.rare())
        if self.chance(0.2):
            words.append(self._natural(w.NOUNS))
        if self.chance(0.12):
            words.append(self.value())
        return words

    def clause(self) -> list[str]:
        """Subject, verb, and what follows."""
        subject = [self.rng.choice(w.PRONOUNS)] if self.chance(0.3) else self.noun_phrase()
        form = self.rng.random()
        if form < 0.4:
            verb = [self.rng.choice(w.AUXILIARIES), self._natural(w.PAST)]
        elif form < 0.6:
            verb = [self.rng.choice(("will", "can", "may", "must", "should", "to")), self._natural(w.VERBS)]
        elif form < 0.8:
            verb = [self._natural(w.VERBS)]
        else:
            verb = [self.rng.choice(w.AUXILIARIES), self._natural(w.ADJECTIVES)]
        if self.chance(0.2):
            verb.insert(self.rng.randrange(len(verb) + 1), self._natural(w.ADVERBS))
        words = subject + verb
        if self.chance(0.5):
            words += self.noun_phrase()
        for _ in range(self.rng.choice((0, 1, 1, 2))):
            words += [self.rng.choice(w.PREPOSITIONS), *self.noun_phrase()]
        return words

    def sentence(self) -> str:
        """One sentence with its punctuation."""
        words = self.clause()
        if self.chance(0.35):
            words[-1] += "," if self.chance(0.7) else ";"
            words += [self.rng.choice(w.CONJUNCTIONS), *self.clause()]
        if self.chance(0.08):
            at = self.rng.randrange(len(words))
            open_, close = self.rng.choice(("()", "()", '""', "“”", "‘’", "''"))
            words[at] = f"{open_}{words[at]}{close}"
        if self.chance(0.04):
            words.insert(self.rng.randrange(1, len(words)), self.rng.choice("–—-&/"))
        text = " ".join(words)
        return text[:1].upper() + text[1:] + self.rng.choice("......?!:.")

    def prose(self, length: int) -> str:
        """Sentences of about `length` characters in all, sometimes plain or odd words instead."""
        style = self.rng.random()
        parts: list[str] = []
        size = 0
        while size < length:
            if style < 0.7:
                part = self.sentence()
            elif style < 0.85:
                part = self.word()
            else:
                part = self.rng.choice((self.rare, self.value, self.word))()
                part = self.cased(part) if self.chance(0.3) else part
            parts.append(part)
            size += len(part) + 1
        text = " ".join(parts)
        return text.upper() if self.chance(0.04) else text

    def cased(self, text: str) -> str:
        """`text` in Title Case, CAPITALS or as it is."""
        form = self.rng.random()
        return text.title() if form < 0.4 else text.upper() if form < 0.7 else text

    def product(self) -> str:
        """Something that is sold."""
        text = self.rng.choice(w.PRODUCTS) if self.chance(0.65) else f"{self.word()} {self.word()}"
        return self.rng.choice((text, text, text.title(), text.upper()))

    def heading(self) -> str:
        """A heading of a few words."""
        text = " ".join(self.word() for _ in range(self.rng.randint(1, 4)))
        text = self.rng.choice((text.title(), text.capitalize(), text.upper()))
        return (
            f"{self.rng.randint(1, 12)}{self.rng.choice(('.', '.', f'.{self.rng.randint(1, 9)}'))} {text}"
            if self.chance(0.25)
            else text
        )

    def label(self) -> str:
        """A label as on a form."""
        text = (
            self.word()
            if self.chance(0.6)
            else f"{self.word()} {self.rng.choice(('No', 'no.', 'date', 'name', 'ID', '#'))}"
        )
        return self.rng.choice((text.capitalize(), text.title(), text.upper()))

    def line(self, length: int) -> str:
        """One line of about `length` characters of any kind."""
        rng = self.rng
        kind = rng.random()
        if kind < 0.34:
            text = self.prose(length + 8)
            start = (
                text.find(" ", rng.randrange(0, max(1, len(text) - length))) + 1 if self.chance(0.6) else 0
            )
            return text[start:]
        if kind < 0.46:
            return " ".join(
                (self.rare() if self.chance(0.6) else self.word()) for _ in range(max(1, length // 7))
            )
        if kind < 0.58:
            label = self.label() + rng.choice((": ", ": ", " ", " : ", ":"))
            return (
                label
                + rng.choice((self.value, self.code, self.person, self.company, self.amount, self.date))()
            )
        if kind < 0.72:
            parts = [self.value() for _ in range(max(1, length // 9))]
            return " ".join(parts)
        if kind < 0.8:
            middle = rng.choice((self.amount, self.number, self.quantity))()
            return f"{self.product()} {middle} {self.amount(False)}"
        makers = (
            self.company,
            self.person,
            self.address,
            self.street,
            self.town,
            self.email,
            self.url,
            self.phone,
            self.heading,
        )
        text = rng.choice(makers)()
        while len(text) + 6 < length:
            text += rng.choice((" ", ", ", " - ", " | ", " ")) + rng.choice((*makers, self.word, self.code))()
        if self.chance(0.06):
            text = (
                "".join(
                    rng.choices("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~£€¥§©®°±²½·•×…–—", k=rng.randint(1, 4))
                )
                + " "
                + text
            )
        return self.cased(text) if self.chance(0.2) else text

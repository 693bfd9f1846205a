"""Random Chinese labels and values."""

from __future__ import annotations

from hiresvlm.nano.data import chinese as zh
from hiresvlm.nano.data.text import Writer


class ChineseWriter:
    """Chinese values and lines; figures and codes come from the English `Writer`."""

    def __init__(self, english: Writer) -> None:
        """Draw everything from the random stream of `english`."""
        self.rng, self.english = english.rng, english

    def amount(self) -> str:
        """An amount in yuan."""
        value = self.rng.randrange(1, 10 ** self.rng.choice((4, 5, 6, 7))) / 100
        text = f"{value:,.2f}" if self.rng.random() < 0.5 else f"{value:.2f}"
        return self.rng.choice((f"¥{text}", f"¥{text}", text, f"￥{text}", f"{text}元", f"¥ {text}"))

    def date(self) -> str:
        """A date with 年月日, or in digits."""
        year, month, day = self.rng.randint(1990, 2030), self.rng.randint(1, 12), self.rng.randint(1, 28)
        forms = (
            f"{year}年{month}月{day}日",
            f"{year}年{month:02}月{day:02}日",
            f"{year}-{month:02}-{day:02}",
            f"{year}/{month:02}/{day:02}",
            f"{year}.{month:02}.{day:02}",
        )
        return self.rng.choice(forms)

    def code(self) -> str:
        """An invoice or order number."""
        digits = self.english.digits(self.rng.choice((6, 8, 8, 10, 12, 12)))
        return digits if self.rng.random() < 0.7 else self.english.letters(2) + digits

    def person(self) -> str:
        """A name of two or three characters."""
        return self.rng.choice(zh.SURNAMES) + "".join(
            self.rng.choices(zh.GIVEN, k=self.rng.choice((1, 2, 2)))
        )

    def company(self) -> str:
        """A company, a shop or a bank."""
        rng = self.rng
        kind = rng.random()
        if kind < 0.7:
            city = rng.choice(zh.CITIES) + rng.choice(("", "", "市"))
            return city + rng.choice(zh.FIRM_WORDS) + rng.choice(zh.FIRM_TRADES) + rng.choice(zh.FIRM_KINDS)
        if kind < 0.9:
            return rng.choice(zh.FIRM_WORDS) + rng.choice(zh.SHOPS)
        return self.bank()

    def bank(self) -> str:
        """A branch of a bank."""
        return self.rng.choice(zh.BANKS) + self.rng.choice(zh.CITIES) + "分行"

    def address(self) -> str:
        """A street address."""
        rng = self.rng
        text = rng.choice((rng.choice(zh.PROVINCES) + "省", "")) + rng.choice(zh.CITIES) + "市"
        text += rng.choice((rng.choice(zh.DISTRICTS), "")) + rng.choice(zh.ROADS) + f"{rng.randint(1, 999)}号"
        return text + rng.choice(
            (
                "",
                "",
                f"{rng.randint(1, 30)}楼",
                f"{rng.randint(1, 20)}栋{rng.randint(101, 999)}室",
                rng.choice(zh.PLACES),
            )
        )

    def phone(self) -> str:
        """A mobile or fixed number."""
        d = self.english.digits
        return self.rng.choice((f"1{self.rng.choice('3578')}{d(9)}", f"0{d(2)}-{d(8)}", f"400-{d(3)}-{d(4)}"))

    def capitals(self) -> str:
        """An amount in the capital numerals of cheques."""
        parts = [self.rng.choice(zh.DIGITS[1:]) + rank for rank in "万仟佰拾"[self.rng.randrange(3) :]]
        return "".join(parts) + self.rng.choice(zh.DIGITS[1:]) + self.rng.choice(("元整", "圆整", "元伍角整"))

    def pair(self) -> tuple[str, str]:
        """A label and a value that goes with it."""
        rng = self.rng
        kind = rng.randrange(100)
        if kind < 30:
            return rng.choice(zh.MONEY_LABELS), self.amount()
        if kind < 42:
            return rng.choice(zh.DATE_LABELS), self.date()
        if kind < 56:
            return rng.choice(zh.CODE_LABELS), self.code()
        if kind < 68:
            return rng.choice(zh.COMPANY_LABELS), self.company()
        if kind < 76:
            return rng.choice(zh.PERSON_LABELS), self.person()
        if kind < 80:
            return rng.choice(zh.PHONE_LABELS), self.phone()
        if kind < 86:
            return rng.choice(zh.ADDRESS_LABELS), self.address()
        if kind < 92:
            return rng.choice(zh.COUNT_LABELS), str(rng.randint(1, 500))
        label = rng.choice(list(zh.OTHER_LABELS))
        return label, rng.choice(zh.OTHER_LABELS[label])

    def product(self) -> str:
        """Something that is sold."""
        return self.rng.choice(zh.PRODUCTS)

    def line(self, length: int) -> str:
        """One line of about `length` characters."""
        rng = self.rng
        kind = rng.random()
        if kind < 0.5:
            label, value = self.pair()
            text = label + rng.choice(("：", "：", ":", " ", ": ")) + value
        elif kind < 0.62:
            text = (
                f"{self.product()} {rng.randint(1, 20)}{rng.choice(zh.OTHER_LABELS['单位'])} {self.amount()}"
            )
        elif kind < 0.7:
            text = " ".join(rng.sample(zh.TABLE_HEADS, k=max(2, min(6, length // 4))))
        elif kind < 0.76:
            text = " ".join(rng.sample(zh.BUTTONS, k=max(1, min(6, length // 4))))
        elif kind < 0.82:
            text = rng.choice((*zh.TITLES, *zh.PHRASES))
        elif kind < 0.87:
            text = f"人民币（大写）{self.capitals()}"
        elif kind < 0.9:
            mixed = (
                zh.MISCELLANEOUS + zh.NUMERALS.split() + list(zh.RANKS) + list(zh.GIVEN) + list(zh.SURNAMES)
            )
            text = "".join(rng.choices(mixed, k=length))[:length]
        else:
            text = rng.choice((self.company, self.address, self.person, self.date, self.amount))()
        while len(text) + 4 < length and rng.random() < 0.7:
            text += (
                rng.choice((" ", "  "))[:1]
                + rng.choice((self.product, self.person, self.date, self.amount, self.code))()
            )
        return text

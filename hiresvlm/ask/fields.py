"""What documents call the things that people ask for, in English and Chinese.

A field has a kind (what its value looks like) and the wordings of its label. A user's file adds wordings
and fields (`parse`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache

from hiresvlm.ask.wording import similarity, solid


class Kind(StrEnum):
    """What a value looks like."""

    AMOUNT = "amount"
    DATE = "date"
    TIME = "time"
    NUMBER = "number"
    """An identifier: digits, perhaps letters and hyphens."""
    COUNT = "count"
    PERCENT = "percent"
    PHONE = "phone"
    EMAIL = "email"
    COMPANY = "company"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    kind: Kind
    wordings: tuple[str, ...]
    asked: tuple[str, ...] = ()
    """Wordings of questions that no label has ("who sold this")."""

    def match(self, label: str) -> float:
        """How surely a text is a label of this field, 0 to 1."""
        return max((similarity(wording, label) for wording in self.wordings), default=0.0)


def _field(name: str, kind: Kind, wordings: str, asked: str = "") -> Field:
    def split(text: str) -> tuple[str, ...]:
        return tuple(part.strip() for part in text.split("|") if part.strip())

    return Field(name, kind, split(wordings), split(asked))


_A, _N, _T = Kind.AMOUNT, Kind.NUMBER, Kind.TEXT

FIELDS: tuple[Field, ...] = (
    _field("total", _A,
        "total|total amount|grand total|amount due|total due|balance due|amount payable|total payable|net total|"
        "invoice total|order total|total price|total to pay|total charge|net amount|amount inclusive tax|"
        "total inclusive tax|total sales inclusive tax|total rounded|"
        "总金额|总计|合计|价税合计|应付金额|应付总额|应付|实付|实付款|实付金额|合计金额|总额|总价|订单总额|应收金额|金额合计|"
        "费用合计|总费用|付款金额|支付金额",
        "how much in total|total cost|how much must be paid|how much was paid|how much do i owe|how much to pay|"
        "一共多少钱|总共多少钱|要付多少钱|付了多少钱|一共花了多少"),
    _field("subtotal", _A,
        "subtotal|sub total|total before tax|amount before tax|total exclusive tax|taxable amount|"
        "小计|不含税金额|税前金额|商品总额|商品金额|未税金额"),
    _field("tax", _A,
        "tax|tax amount|total tax|sales tax|tax payable|税额|税金|合计税额|增值税额|税款",
        "how much tax"),
    _field("tax_rate", Kind.PERCENT, "tax rate|税率"),
    _field("discount", _A, "discount|total discount|savings|优惠|优惠金额|折扣|折扣金额|减免"),
    _field("shipping", _A, "shipping|shipping fee|delivery fee|freight|postage|运费|配送费|邮费"),
    _field("cash", _A, "cash|cash tendered|amount tendered|cash received|paid in cash|现金|实收|收款"),
    _field("change", _A, "change|change due|cash change|找零|找回"),
    _field("rounding", _A, "rounding|rounding adjustment|抹零|舍入"),
    _field("deposit", _A, "deposit|down payment|security deposit|押金|定金|订金|保证金"),
    _field("balance", _A, "balance|account balance|closing balance|available balance|余额|账户余额|可用余额|结余"),
    _field("unit_price", _A, "unit price|price|price each|rate|单价|价格"),
    _field("amount", _A, "amount|line total|金额|款额"),
    _field("debit", _A, "debit|withdrawal|paid out|支出|借方|付出"),
    _field("credit", _A, "credit|paid in|收入|贷方|存入"),
    _field("quantity", Kind.COUNT, "quantity|units|pieces|pcs|total quantity|数量|件数|总数量", "how many units"),
    _field("date", Kind.DATE,
        "date|invoice date|issue date|date issued|issued on|date of issue|billing date|receipt date|transaction date|"
        "日期|开票日期|开具日期|开单日期|制单日期|填表日期|填写日期|交易日期|下单日期",
        "when was it issued|invoice issued|receipt issued|bill issued|什么时候开的|哪天开的|何时开具"),
    _field("due_date", Kind.DATE,
        "due date|payment due|pay by|due by|due on|deadline|到期日|付款截止日期|截止日期|到期日期|付款期限|最晚付款日",
        "when must it be paid|when is payment due|什么时候到期|最晚什么时候付"),
    _field("delivery_date", Kind.DATE, "delivery date|ship date|shipped on|delivered on|发货日期|送货日期|交货日期|送达日期"),
    _field("birth_date", Kind.DATE, "date of birth|birth date|born|dob|出生日期|出生年月|生日", "was born|born"),
    _field("start_date", Kind.DATE, "start date|starts on|valid from|effective date|from date|开始日期|起始日期|生效日期|入职日期"),
    _field("end_date", Kind.DATE, "end date|ends on|valid until|valid to|expiry date|expires on|结束日期|终止日期|有效期至|失效日期"),
    _field("time", Kind.TIME, "time|order time|transaction time|时间|下单时间|付款时间|交易时间|支付时间"),
    _field("invoice_number", _N,
        "invoice number|invoice #|tax invoice number|bill number|发票号码|发票号|发票编号|账单号"),
    _field("invoice_code", _N, "invoice code|发票代码"),
    _field("order_number", _N, "order number|purchase order number|po number|order reference|订单号|订单编号|采购单号|单号"),
    _field("receipt_number", _N, "receipt number|document number|doc number|voucher number|收据号|凭证号|单据号|小票号|流水号"),
    _field("customer_number", _N, "customer number|member number|client number|客户编号|会员号|客户号|会员编号"),
    _field("reference", _N, "reference|reference number|参考号|业务编号"),
    _field("tracking_number", _N, "tracking number|waybill number|运单号|快递单号|物流单号"),
    _field("account", _N,
        "account number|bank account|iban|账号|银行账号|卡号|card number|收款账号"),
    _field("tax_number", _N,
        "tax number|tax registration number|tax reg number|vat registration number|taxpayer number|tin|"
        "纳税人识别号|税号|统一社会信用代码"),
    _field("identity_number", _N, "identity number|identity card number|passport number|identification number|"
        "身份证号|身份证号码|护照号|证件号码"),
    _field("check_code", _N, "check code|verification code|校验码|验证码"),
    _field("serial_number", _N, "serial number|序列号|机器编号|设备编号|device number"),
    _field("page_count", Kind.COUNT, "number of pages|页数"),
    _field("phone", Kind.PHONE,
        "phone|phone number|contact number|telephone|hotline|电话|联系电话|手机|手机号|电话号码|客服电话"),
    _field("fax", Kind.PHONE, "fax|fax number|传真"),
    _field("email", Kind.EMAIL, "email|email address|e mail|邮箱|邮箱地址|电子邮箱地址|电子邮箱|电子邮件|邮件"),
    _field("seller", Kind.COMPANY,
        "seller|vendor|supplier|from|issued by|billed by|sold by|merchant|store|shop|company|company name|"
        "销售方|销售方名称|卖方|供应商|商家|收款方|收款单位|开票单位|公司名称|公司|单位名称|店铺|商户名称",
        "who issued|who sold|which company|which shop|谁开的|哪家公司|哪家店|商店"),
    _field("buyer", Kind.COMPANY,
        "buyer|customer|bill to|billed to|sold to|client|purchaser|invoice to|customer name|"
        "购买方|购买方名称|买方|客户|客户名称|付款单位|付款方|购货单位|收货单位|抬头",
        "who bought|who is billed|谁买的|开给谁|卖给谁"),
    _field("bank", _T, "bank|bank name|开户行|开户银行|银行"),
    _field("name", _T, "name|full name|applicant|applicant name|姓名|名字|申请人|收货人|联系人", "who is"),
    _field("payee", _T, "payee|收款人"),
    _field("cashier", _T, "cashier|served by|收银员|收银"),
    _field("address", _T, "address|delivery address|ship to|home address|地址|收货地址|住址|通讯地址|住所"),
    _field("department", _T, "department|部门|科室|所属部门"),
    _field("position", _T, "position|job title|occupation|职位|职务|职业|岗位"),
    _field("gender", _T, "gender|sex|性别"),
    _field("nationality", _T, "nationality|国籍|民族"),
    _field("payment_method", _T,
        "payment method|payment mode|paid by|pay with|payment type|支付方式|付款方式|结算方式", "how was it paid|怎么付的"),
    _field("status", _T, "status|order status|state|状态|订单状态"),
    _field("item", _T, "item|description|product|goods|品名|项目名称|商品名称|项目|货物名称|名称|摘要"),
    _field("unit", _T, "unit|uom|单位"),
    _field("specification", _T, "specification|model|size|规格|型号|规格型号"),
    _field("remarks", _T, "remarks|remark|notes|note|comment|备注|说明|附注"),
)  # fmt: skip

_BY_NAME = {field.name: field for field in FIELDS}


def merged(extra: Mapping[str, tuple[str, ...]]) -> tuple[Field, ...]:
    """The table with a user's wordings added; a name that is not in it becomes a field of free text."""
    table = dict(_BY_NAME)
    for name, wordings in extra.items():
        known = table.get(name)
        if known is None:
            table[name] = Field(name, Kind.TEXT, tuple(dict.fromkeys((name.replace("_", " "), *wordings))))
        else:
            table[name] = replace(known, wordings=tuple(dict.fromkeys((*known.wordings, *wordings))))
    return tuple(table.values())


def parse(text: str) -> dict[str, tuple[str, ...]]:
    """A user's file: a JSON object, field name -> list of wordings. Raises `ValueError` with what is wrong."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON ({error})") from None
    if not isinstance(value, dict):
        raise ValueError("not a JSON object of field names")
    for name, wordings in value.items():
        if not name.strip():
            raise ValueError("an empty field name")
        if not isinstance(wordings, list) or not all(isinstance(w, str) and solid(w) for w in wordings):
            raise ValueError(f"{name!r} is not a list of wordings")
    return {name: tuple(wordings) for name, wordings in value.items()}


@lru_cache(maxsize=65536)
def best(label: str, table: tuple[Field, ...] = FIELDS) -> tuple[Field | None, float]:
    """The field that a label names, and how surely."""
    found, score = None, 0.0
    for field in table:
        match = field.match(label)
        if match > score:
            found, score = field, match
    return found, score

"""How fields are labelled and asked for. Everything here is ordinary wording; questions and labels are
drawn independently, so most questions do not use the word that is printed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Phrase:
    kind: str
    labels: Mapping[str, tuple[str, ...]]
    questions: Mapping[str, tuple[str, ...]]


def _phrase(kind: str, en: str, zh: str, ask_en: str, ask_zh: str) -> Phrase:
    def split(text: str) -> tuple[str, ...]:
        return tuple(part.strip() for part in text.split("|"))

    return Phrase(kind, {"en": split(en), "zh": split(zh)}, {"en": split(ask_en), "zh": split(ask_zh)})


PHRASES = {
    "total": _phrase("amount", "Total|Grand total|Amount due|Total amount|Balance due", "总金额|合计|应付金额|价税合计|总计",
        "What is the total amount?|How much must be paid in total?|What is the grand total?|Total amount due?|How much is the total?",
        "总金额?|总金额是多少？|一共要付多少钱？|应付多少？|请问合计金额是多少"),
    "subtotal": _phrase("amount", "Subtotal|Sub-total", "小计|不含税金额",
        "What is the subtotal?|How much is the subtotal?", "小计是多少？|小计多少元"),
    "tax": _phrase("amount", "Tax|Sales tax|VAT", "税额|税金",
        "How much tax is charged?|What is the tax amount?", "税额是多少？|税额?"),
    "discount": _phrase("amount", "Discount", "优惠|折扣",
        "What is the discount?|How much is the discount?", "优惠是多少？|折扣金额是多少？"),
    "shipping": _phrase("amount", "Shipping|Delivery fee", "运费|配送费",
        "What is the shipping fee?|How much is the shipping?", "运费是多少？|运费多少钱？"),
    "deposit": _phrase("amount", "Deposit", "押金|定金",
        "How much is the deposit?|What is the deposit?", "押金是多少？|定金多少钱？"),
    "invoice_number": _phrase("text", "Invoice No.|Invoice number|Invoice #", "发票号码|发票号",
        "What is the invoice number?|Please give me the invoice number.|invoice no?", "发票号码是多少？|发票号码?|请问发票号是什么？"),
    "order_number": _phrase("text", "Order No.|Order number|PO number", "订单号|订单编号",
        "What is the order number?|Which order number is shown?", "订单号是多少？|订单编号是什么？"),
    "customer_number": _phrase("text", "Customer No.|Customer number", "客户编号",
        "What is the customer number?", "客户编号是多少？"),
    "tracking_number": _phrase("text", "Tracking number|Tracking No.", "快递单号|运单号",
        "What is the tracking number?", "快递单号是多少？|运单号是多少"),
    "account": _phrase("text", "Account number|Account No.", "银行账号|账号",
        "What is the account number?|Which account number is given?", "账号是多少？|银行账号是什么？"),
    "passport": _phrase("text", "Passport No.|Passport number", "护照号|护照号码",
        "What is the passport number?", "护照号码是多少？"),
    "date": _phrase("date", "Date|Invoice date|Date of issue|Issued on", "日期|开票日期|开具日期",
        "What is the invoice date?|When was the invoice issued?|What is the date of the invoice?", "开票日期是哪天？|发票是什么时候开的？|日期?"),
    "due_date": _phrase("date", "Due date|Payment due|Pay by", "到期日|付款截止日期|付款期限",
        "When is the payment due?|What is the due date?", "付款截止日期是哪天？|什么时候到期？"),
    "birth_date": _phrase("date", "Date of birth|Birth date", "出生日期",
        "What is the date of birth?|When was the applicant born?", "出生日期是哪天？|出生日期?"),
    "start_date": _phrase("date", "Start date|Valid from", "开始日期|生效日期",
        "What is the start date?", "开始日期是什么时候？|生效日期是哪天？"),
    "seller": _phrase("text", "Seller|From|Sold by|Supplier", "销售方|供应商|销售方名称",
        "Who is the seller?|Which company issued this invoice?|What is the name of the seller?", "销售方是谁？|哪家公司开的？|销售方名称是什么？"),
    "buyer": _phrase("text", "Bill to|Buyer|Customer", "购买方|客户名称|购买方名称",
        "Who is the buyer?|Who is the customer?", "购买方是谁？|客户名称是什么？"),
    "seller_phone": _phrase("text", "Phone|Tel.", "电话|联系电话",
        "What is the phone number of the seller?|What is the seller's phone number?", "销售方的电话是多少？|销售方电话?"),
    "buyer_phone": _phrase("text", "Phone|Tel.", "电话|联系电话",
        "What is the phone number of the buyer?|What is the buyer's phone number?", "购买方的电话是多少？|购买方电话?"),
    "name": _phrase("text", "Full name|Name|Applicant", "姓名|申请人",
        "What is the name of the applicant?|What is the full name?", "姓名是什么？|申请人叫什么？"),
    "phone": _phrase("text", "Phone|Phone number|Telephone", "电话|联系电话|手机",
        "What is the phone number?|Which phone number is given?", "电话是多少？|联系电话?"),
    "email": _phrase("text", "Email|E-mail", "邮箱|电子邮箱",
        "What is the email address?|What is the e-mail?", "邮箱是什么？|电子邮箱地址是多少？"),
    "address": _phrase("text", "Address|Home address", "地址|通讯地址",
        "What is the address?|What is the home address?", "地址是哪里？|通讯地址是什么？"),
    "department": _phrase("text", "Department", "部门|所属部门",
        "Which department is it?|What is the department?", "部门是什么？|所属部门?"),
    "position": _phrase("text", "Position|Job title", "职位|岗位",
        "What is the job title?|What is the position?", "职位是什么？|岗位是什么"),
    "nationality": _phrase("text", "Nationality", "国籍",
        "What is the nationality?", "国籍是什么？"),
    "payment_method": _phrase("text", "Payment method|Paid by", "支付方式|付款方式",
        "What is the payment method?|How was it paid?", "支付方式是什么？|付款方式?"),
    "status": _phrase("text", "Status|Order status", "订单状态|状态",
        "What is the status of the order?|What is the order status?", "订单状态是什么？|状态?"),
    "order_time": _phrase("text", "Order time", "下单时间",
        "What is the order time?", "下单时间是什么？"),
    "balance": _phrase("amount", "Balance|Account balance", "余额|账户余额",
        "What is the account balance?|What is the balance?", "余额是多少？|账户余额是多少"),
    # Cells of a table: {of} names the row.
    "unit_price": _phrase("amount", "Unit price|Price", "单价",
        "What is the unit price of {of}?|How much is the unit price of {of}?", "{of}的单价是多少？|{of}单价?"),
    "quantity": _phrase("text", "Quantity|Qty", "数量",
        "What is the quantity of {of}?", "{of}的数量是多少？|{of}数量"),
    "amount": _phrase("amount", "Amount", "金额",
        "What is the amount of {of}?", "{of}的金额是多少？|{of}金额?"),
    "debit": _phrase("amount", "Debit", "借方|支出",
        "What is the debit of {of}?", "{of}的支出是多少？"),
    "row_balance": _phrase("amount", "Balance", "余额|结余",
        "What is the balance of {of}?", "{of}的余额是多少？"),
    "row_date": _phrase("date", "Date", "日期",
        "What is the date of {of}?|What is the date of entry {of}?", "{of}的日期是哪天？"),
    # Labels that no table of fields has: {of} is the label itself.
    "setting": _phrase("text", "", "",
        "What is the {of}?|{of}?|Tell me the {of}.", "{of}是多少？|{of}?|{of}是什么？"),
}  # fmt: skip

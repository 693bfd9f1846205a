"""What forms say: labels as they are printed, the names they are asked by, and the kinds of their values.

Fields of one group have values of one kind, so they are easily confused; a question about an absent field
prefers one whose group is there.
"""

# ruff: noqa: E501
# One field a line in the tables.

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from hiresvlm.nano.data.words import listed


@dataclass(frozen=True)
class Field:
    """One thing that a form can say."""

    key: str
    group: str
    """money, date, code, person, company, address, phone, count, or other."""
    labels: tuple[str, ...]
    """As printed, without the colon."""
    names: tuple[str, ...]
    """As asked, all of one meaning; empty where the labels differ in meaning: then only that printed is asked."""
    values: tuple[str, ...] = ()
    """To choose from, for fields of the group `other`."""


def _fields(text: str) -> tuple[Field, ...]:
    """One field a line: key, group, labels, names and values with semicolons between, each divided by bars."""
    made = []
    for row in text.strip().splitlines():
        key, group, labels, names, *values = (part.strip() for part in row.split(";"))
        made.append(
            Field(
                key,
                group,
                tuple(labels.split("|")),
                tuple(filter(None, names.split("|"))),
                tuple(values[0].split("|")) if values else (),
            )
        )
    return tuple(made)


ENGLISH: Final = _fields("""
total; money; Total|TOTAL|Total|Grand Total|Total Amount|TOTAL AMOUNT|Total Due|Total Payable|Invoice Total; total|total|total amount|grand total
subtotal; money; Subtotal|Sub-total|SUBTOTAL|Sub Total|Total excl. tax; subtotal|sub-total|sub total
tax; money; Tax|TAX|VAT|GST|Sales Tax|VAT 20%|GST 6%|Tax (8%)|Total Tax; tax|vat|gst|tax amount
discount; money; Discount|DISCOUNT|Discount 10%|Less discount|Rebate; discount
shipping; money; Shipping|Delivery|Freight|Postage|Shipping Cost|Delivery Fee; shipping|shipping cost|delivery fee
balance; money; Balance|Balance Due|Outstanding|Amount Outstanding; balance|balance due|outstanding balance
deposit; money; Deposit|Deposit Paid; deposit
paid; money; Amount Paid|Paid|Payment Received; amount paid
cash; money; Cash|CASH|Cash Tendered|Cash Received; cash|cash tendered
change; money; Change|CHANGE|Change Due|Cash Change; change|change due
tip; money; Tip|Gratuity; tip|gratuity
service; money; Service Charge|Service 10%|SVC CHG; service charge
price; money; Unit Price|Price|Unit Cost|Rate; unit price|price
rent; money; Rent|Monthly Rent|Room Rate|Fare|Salary|Premium;
fee; money; Fee|Late Fee|Handling Fee|Processing Fee|Rounding;
invoice_no; code; Invoice No|Invoice No.|Invoice Number|Invoice #|INVOICE NO|Inv. No.; invoice number|invoice no|invoice number
order_no; code; Order No|Order No.|Order Number|Order #|ORDER NO.|Order ID; order number|order no|order id
receipt_no; code; Receipt No|Receipt #|Receipt Number|RECEIPT NO.|Rcpt No; receipt number|receipt no
po_no; code; PO No|P.O. Number|PO Number|Purchase Order|PO #; purchase order|po number
customer_no; code; Customer No|Customer ID|Client ID|Customer Number|Cust. No.; customer number|customer id
account_no; code; Account No|Account Number|A/C No.|Account|IBAN; account number|account
reference; code; Reference|Ref|Ref.|Our Ref|Reference No|Your Ref; reference|reference number
tracking; code; Tracking No|Tracking Number|Tracking ID|Waybill; tracking number
tax_id; code; Tax ID|VAT No|GST Reg No|VAT Number|GST ID; tax id|vat number|gst number
contract_no; code; Contract No|Contract Number; contract number|contract no
policy_no; code; Policy No|Policy Number; policy number|policy no
ticket; code; Ticket No|Ticket Number|TICKET; ticket number|ticket no
booking; code; Booking No|Booking Ref|Booking Number; booking number|booking reference
serial; code; Serial No|Serial Number|S/N; serial number|serial no
part; code; Part No|Model|Batch No|Claim No|Lot No;
member; code; Member No|Member ID|Membership No; member number|member id
card; code; Card No|Card Number|CARD; card number
postcode; code; Postcode|ZIP|ZIP Code|Postal Code; postcode|zip code
date; date; Date|DATE|Date|Dated; date|date
invoice_date; date; Invoice Date|INVOICE DATE|Date of Invoice|Billing Date; invoice date|billing date
due_date; date; Due Date|Payment Due|Due|Pay by|DUE DATE; due date|payment due date
order_date; date; Order Date|Date Ordered|Ordered on; order date
delivery_date; date; Delivery Date|Ship Date|Delivered on|Shipped; delivery date|ship date
birth_date; date; Date of Birth|DOB|Birth Date|Born; date of birth|birth date
expiry; date; Expiry Date|Valid until|Expires|Exp. Date|Best before; expiry date|expiration date
start_date; date; Start Date|From Date; start date
arrival; date; Check-in|Arrival|Valid from|Printed on;
end_date; date; End Date|To Date; end date
departure; date; Check-out|Departure|Return Date|Renewal;
time; time; Time|TIME|Time of sale; time
opens; time; Opens|Opening time; opening time
closes; time; Closes|Closing time; closing time
pick_up; time; Pick-up|Drop-off|Departs|Arrives;
customer; person; Customer|Client|Customer Name|Name of customer; customer|customer name|client
name; person; Name|NAME|Full Name|Your name; name|full name
contact; person; Contact|Contact Person|Attn|Attention; contact|contact person
cashier; person; Cashier|CASHIER|Served by|Operator; cashier
salesperson; person; Salesperson|Sales Rep|Agent; salesperson|sales rep
manager; person; Manager|Supervisor|Approved by|Doctor|Teacher;
patient; person; Patient|Student|Employee|Guest|Passenger;
signed; person; Signed by|Signature; signature
prepared; person; Prepared by|Issued by|Checked by|Received by;
company; company; Company|Company Name|COMPANY|Business Name; company|company name
supplier; company; Supplier|Vendor|Seller|Sold by; supplier|vendor|seller
buyer; company; Buyer|Bill To|Billed to|Sold To; buyer|bill to
bank; company; Bank|Bank Name|Paying Bank; bank|bank name
carrier; company; Carrier|Courier|Shipped via; carrier|courier
address; address; Address|ADDRESS|Street|Street Address; address
ship_to; address; Ship To|Deliver to|Delivery Address; ship to|delivery address
phone; phone; Phone|Tel|Tel.|Telephone|PHONE|Phone No; phone|phone number|telephone
mobile; phone; Mobile|Cell|Mobile No; mobile|mobile number
fax; phone; Fax|FAX|Fax No.; fax|fax number
email; email; Email|E-mail|EMAIL|Mail; email|e-mail
website; url; Website|Web|URL|Homepage; website|web address
city; city; City|Town|CITY; city
country; other; Country|COUNTRY|Origin; country; Germany|France|Malaysia|China|Japan|Spain|Canada|USA|UK|India|Brazil
quantity; count; Quantity|Qty|QTY|Pieces; quantity|qty
items; count; Items|No. of items|Item Count|Total Items; items|number of items
pages; count; Pages|Guests|Nights|Persons|Rooms;
weight; measure; Weight|Gross Weight|Net Weight; weight
size; measure; Size|Length|Width|Height|Volume;
rate; percent; Tax Rate|VAT Rate; tax rate|vat rate
interest; percent; Interest Rate|Discount Rate|Margin|Humidity;
payment; other; Payment|Payment Method|Paid by|Pay Method; payment method; Cash|Credit Card|VISA|Bank Transfer|Cheque|PayPal|Debit Card|Mastercard
terms; other; Terms|Payment Terms; payment terms|terms; Net 30|30 days|14 days net|Net 60|Due on receipt|COD|Prepaid
currency; other; Currency|CURRENCY; currency; USD|EUR|GBP|MYR|CNY|SGD|JPY|CHF
status; other; Status|STATUS|Order Status; status; Paid|Open|Pending|Shipped|Cancelled|Approved|Overdue|Closed|Draft
department; other; Department|Dept|Dept.|Division; department; Sales|Finance|Purchasing|Support|Marketing|Production|Research|Legal
position; other; Position|Job Title|Title|Role; position|job title; Manager|Engineer|Clerk|Director|Analyst|Accountant|Nurse|Driver
table; seat; Table|Table No|TABLE; table|table number
room; seat; Room|Room No|Room Number; room|room number
seat; seat; Seat|Seat No; seat|seat number
gate; seat; Gate|Platform|Floor|Desk;
flight; flight; Flight|Flight No|FLIGHT NO.; flight|flight number
""")

CHINESE: Final = _fields("""
total; money; 总金额|合计|合计金额|总计|价税合计|应付金额; 总金额|合计|合计金额|总计|总金额
subtotal; money; 小计|不含税金额; 小计|不含税金额
amount; money; 金额; 金额
tax; money; 税额; 税额
discount; money; 折扣|优惠|优惠金额; 折扣|优惠|优惠金额
shipping; money; 运费|快递费; 运费
paid; money; 实付金额|实收|付款金额; 实付金额|实收|付款金额
change; money; 找零; 找零
balance; money; 余额; 余额
deposit; money; 押金; 押金
advance; money; 定金; 定金
refund; money; 退款金额; 退款金额
price; money; 单价; 单价
invoice_no; code; 发票号码; 发票号码|发票号码
invoice_code; code; 发票代码; 发票代码
order_no; code; 订单号|订单编号|单号; 订单号|订单编号
contract_no; code; 合同编号; 合同编号
flow_no; code; 流水号|交易号; 流水号|交易号
number; code; 编号; 编号
customer_no; code; 客户编号; 客户编号
member; code; 会员号; 会员号
tax_id; code; 纳税人识别号; 纳税人识别号
account_no; code; 账号|银行账号; 账号|银行账号
check_code; code; 校验码; 校验码
date; date; 日期; 日期
invoice_date; date; 开票日期; 开票日期
order_date; date; 订单日期|下单时间; 订单日期|下单时间
trade_date; date; 交易日期; 交易日期
due_date; date; 到期日|到期日期; 到期日|到期日期
ship_date; date; 发货日期; 发货日期
birth_date; date; 出生日期; 出生日期
buyer; company; 购买方; 购买方
seller; company; 销售方; 销售方
company; company; 公司|公司名称; 公司|公司名称
customer_name; company; 客户名称; 客户名称
payee_firm; company; 收款单位; 收款单位
supplier; company; 供应商; 供应商
bank; bank; 开户行; 开户行
name; person; 姓名; 姓名
contact; person; 联系人; 联系人
payee; person; 收款人; 收款人
issuer; person; 开票人; 开票人
reviewer; person; 复核; 复核
cashier; person; 收银员; 收银员
receiver; person; 收货人; 收货人
handler; person; 经办人; 经办人
manager; person; 负责人; 负责人
address; address; 地址|公司地址|联系地址; 地址
ship_to; address; 收货地址|送货地址; 收货地址|送货地址
phone; phone; 电话|联系电话; 电话|联系电话
mobile; phone; 手机|手机号码; 手机|手机号码
fax; phone; 传真; 传真
quantity; count; 数量|件数; 数量|件数
points; count; 积分; 积分
people; count; 人数; 人数
tax_rate; other; 税率; 税率; 3%|6%|9%|13%
payment; other; 付款方式|支付方式; 付款方式|支付方式; 现金|微信支付|支付宝|银行卡|信用卡|银行转账|刷卡
unit; other; 单位; 单位; 个|件|箱|瓶|盒|袋|包|斤|千克|米|张|台|套
sex; other; 性别; 性别; 男|女
department; other; 部门; 部门; 财务部|销售部|采购部|人事部|技术部|市场部|行政部|生产部|研发部
position; other; 职位; 职位; 经理|主任|会计|出纳|工程师|助理|总监|店长
status; other; 状态; 状态; 已完成|待付款|已发货|处理中|已取消|已退款|待审核|正常
note; other; 备注; 备注; 无|加急|含税|请尽快发货|货到付款|已付清
product; other; 商品名称|品名|货物名称; 商品名称|品名|货物名称; 办公用品|打印纸|餐费|住宿费|服务费|咨询费|电脑|显示器
""")

COMMON: Final = frozenset(
    listed("""total subtotal tax discount shipping cash change amount price invoice_no order_no date invoice_date due_date
    company customer buyer seller address phone payment quantity""")
)
"""What most documents say, and most questions ask for."""

UNCLEAR: Final = (
    {"total", "balance", "amount"},
    {"total", "paid"},
    {"date", "invoice_date"},
    {"date", "order_date", "trade_date"},
    {"supplier", "company", "buyer"},
    {"company", "customer_name", "payee_firm"},
    {"customer", "name", "buyer"},
    {"phone", "mobile"},
    {"tip", "service", "fee"},
    {"salesperson", "supplier"},
    {"amount", "subtotal", "discount", "paid"},
    {"number", "order_no", "customer_no"},
    {"address", "ship_to"},
    {"tax", "rate"},
    {"start_date", "arrival"},
    {"end_date", "departure"},
    {"paid", "deposit", "cash"},
    {"buyer", "seller", "supplier", "payee_firm"},
)
"""Fields of which one could be taken for the other: where one is there, the other is not asked as absent."""

ENGLISH_QUESTIONS: Final = (
    *(
        "what is the {}?",
        "what is the {}",
        "What is the {}?",
        "what is the {}?",
        "What is the {}",
        "{}?",
        "{}",
        "{}:",
    ),
    *("what's the {}?", "find the {}", "give me the {}", "What {} is shown?", "read the {}"),
)
CHINESE_QUESTIONS: Final = ("{}?", "{}？", "{}是什么", "{}是什么？", "{}", "{}：", "请问{}是什么")
_MUCH = ("{}是多少", "{}是多少？", "请问{}是多少？")
BY_GROUP: Final[Mapping[str, tuple[str, ...]]] = {
    "person": ("who is the {}?", "Who is the {}?"),
    "money": ("how much is the {}?", "How much is the {}?"),
    "date": ("when is the {}?",),
}
CHINESE_BY_GROUP: Final[Mapping[str, tuple[str, ...]]] = {
    "person": ("{}是谁", "{}是谁？"),
    "money": (*_MUCH, "{}多少钱"),
    "count": _MUCH,
    "code": _MUCH,
    "phone": _MUCH,
    "date": ("{}是哪天", "{}是哪一天？"),
}
"""Ways to ask for a label."""


LABELS: Final = frozenset(label.lower() for field in ENGLISH for label in (*field.labels, *field.names))


def unclear(key: str) -> frozenset[str]:
    """The fields that could be taken for this one."""
    return frozenset().union(*(group for group in UNCLEAR if key in group)) - {key}

"""Wording of the sample documents: every person, firm, number and place in it is invented.

``make_samples.py`` lays these strings out. Text here is not yet broken into lines, except where a line is
one item of a list. ``{n}``, ``{t}``, ``{d}``, ``{c}`` stand for a number, a time, a date and a code that the
generator fills in, so that one sentence can be used twice without reading the same.
"""

REPORT_TITLE = "Lindmere Valley Tram Authority"
REPORT_SUBTITLE = "Track and Depot Condition Report, Spring 2024"

REPORT_SUMMARY = (
    (
        "Between 4 March and 19 April 2024 the inspection team walked all 61.8 km of running track and visited "
        "the four depots of the Authority. The network is safe to operate at the posted speeds. Of 2,417 rail "
        "joints examined, 2,266 needed no work, 118 were tightened on the spot and 33 were entered in the "
        "repair register. No broken rail was found, for the third year in a row."
    ),
    (
        "Wear is no longer spread evenly. The curves at Quarry Lane and Saint Orla Square carry nearly a third "
        "of all register entries, although they make up less than 4 % of the length. Both curves were last "
        "renewed in 2009 and have now passed the age at which regrinding is cheaper than replacement. We "
        "recommend that they be renewed together in the summer closure of 2025."
    ),
    (
        "Depot buildings are in better shape than in the 2022 report. The roof at Hollin Street no longer "
        "leaks, and the wheel lathe at Fernbank returned to service on 11 February. The remaining concern is "
        "the drainage of the north yard at Millgate, where standing water reached the conduit boxes twice "
        "during the winter."
    ),
)
REPORT_METHOD = (
    (
        "Each section was walked by two inspectors, one reading gauge and cant with a trolley, the other "
        "recording joints, fastenings and ballast by eye. Readings were taken every 5 m on straight track and "
        "every 2 m in curves. A reading outside the limits of standard LV-14 was repeated within the hour with "
        "a second trolley; only values confirmed in this way are counted below."
    ),
    (
        "The trolleys were calibrated on 1 March against the reference frame at Fernbank and again on 22 "
        "April. The drift over the campaign was 0.3 mm, well inside the permitted 1.0 mm. Photographs of every "
        "register entry, 4,105 in all, are kept with the raw readings in archive box T-2024-07."
    ),
    (
        "Night work was limited to eleven shifts in order to keep the first morning service on time. Two "
        "shifts were lost to heavy rain (14 March and 3 April), and the section from Ferry Steps to Old "
        "Customs House was for that reason walked by day under flag protection."
    ),
    (
        "Results are given by depot, because crews, tools and budgets are held there. Where a defect lies on "
        "the border between two districts it is counted once, with the depot that will carry out the repair. "
        "Costs are in euros at January 2024 prices and leave out value added tax."
    ),
)
REPORT_COLUMNS = (
    (
        "Hollin Street",
        (
            "Hollin Street looks after 18.2 km of track, most of it laid in the road surface. "
            "The paving on both sides of the rail was renewed in 2021 and drains well. Inspectors recorded 9 "
            "register entries, the lowest number since the depot opened. Three of these are loose check rails "
            "near the library stop; they can be fixed in a single night. The switch at Coopers Row closes slowly "
            "in frost and should be given a heater of the newer type before November."
        ),
    ),
    (
        "Fernbank",
        (
            "Fernbank has the oldest rails but also the best kept ones. Grinding in the autumn of "
            "2023 removed the short wave pattern on the hill between Upper Mill and the hospital, and noise "
            "complaints fell from 41 to 6. The team found 7 entries, all of them minor. The wheel lathe now turns "
            "a set in 38 minutes, compared with more than an hour before its repair, so that flat spots no longer "
            "wait for the weekend."
        ),
    ),
    (
        "Millgate",
        (
            "Millgate is the district that needs most attention. Eleven entries come from Quarry Lane "
            "alone, where the outer rail has lost 9 mm of its head on the sharpest part of the curve. A speed "
            "limit of 15 km/h has been in force there since 27 March. The yard drain was cleared twice without "
            "lasting effect; a camera survey shows that the pipe has sunk by 12 cm at the fence and holds water "
            "even in dry weeks. Replacement of 64 m of pipe is the only permanent cure."
        ),
    ),
    (
        "Saint Orla",
        (
            "The smallest depot serves the harbour loop. Salt has attacked the fastenings along the "
            "quay, and 140 clips were changed during the inspection itself. In Saint Orla Square the concrete "
            "under the crossing is cracked on the east side. The cracks are narrow, below 0.4 mm, and have not "
            "grown since they were first measured in October, but they should be read every month until the "
            "renewal. The depot asks for a second gauge trolley; sharing one with Millgate cost about nine "
            "working days this spring."
        ),
    ),
    (
        "Overhead line",
        (
            "Contact wire was measured from the tower car on six nights. Thickness is above 9.5 "
            "mm everywhere except at the two section insulators by the brewery, where arcing has thinned it to "
            "8.1 mm. Spare insulators are in stock. Poles 212 to 219 lean towards the river by up to 2 degrees, "
            "unchanged from 2022."
        ),
    ),
    (
        "Stops and signs",
        (
            "All 74 stops were checked for lighting, edge marking and step height. Four "
            "shelters lost a pane over the winter and have been boarded. Timetable cases at Ferry Steps let in "
            "water and will be sealed in May."
        ),
    ),
)
REPORT_COSTS = (
    (
        "The table gives the work that cannot wait beyond the dates shown. It does not contain the renewal of "
        "the two curves, which is put forward as a capital project with its own estimate of 1,286,000.00 "
        "euros. Figures include labour, material and one spare night for each depot."
    ),
)
REPORT_TABLE = (
    ("Depot", "Track (km)", "Entries", "Due by", "Cost (EUR)"),
    ("Hollin Street", "18.2", "9", "2024-09-30", "21,450.00"),
    ("Fernbank", "16.9", "7", "2024-10-31", "13,980.50"),
    ("Millgate", "15.4", "12", "2024-07-15", "88,215.75"),
    ("Saint Orla", "11.3", "5", "2024-08-31", "34,702.25"),
    ("Total", "61.8", "33", "", "158,348.50"),
)
REPORT_NEXT = (
    (
        "(1) Millgate orders the drain pipe before 10 May and closes the north yard for two weeks in June. "
        "Cars are stabled at Fernbank during that time."
    ),
    (
        "(2) The speed limit at Quarry Lane stays in force until the curve is renewed. Drivers are reminded by "
        "a notice in the duty room and by a sign at the track."
    ),
    (
        "(3) Saint Orla reads the crack gauges on the first Monday of every month and reports any growth above "
        "0.1 mm within one day to the track office."
    ),
    (
        "(4) The track office prepares the tender for both curves by 30 September, so that the board can "
        "decide in its November meeting."
    ),
    (
        "Questions about this report may be sent to the track office, room 3.17, or by telephone to extension "
        "5528. The next full inspection is planned for the spring of 2026."
    ),
)

# Chat messages, news cards and notices of the two screenshots.
CHINESE = (
    "今天的晨会改到{t}，地点在三楼东侧的小会议室，请大家带上上周的进度表和尚未解决的问题清单。",
    "仓库那边刚刚来电，说编号{c}的包裹外箱有些受潮，里面的零件暂时看不出损坏，需要质检同事去确认一下。",
    "根据{d}的记录，二号生产线的平均温度比标准高了{n}%，建议先检查冷却水泵，再决定是否停机。",
    "新版客户端已经发布，主要修复了登录后页面空白、图片上传失败以及夜间模式下字体颜色过浅的问题。",
    "如果您在{d}之前完成预约，可以免费领取一份纪念礼品，数量有限，先到先得，每位读者限领一份。",
    "市图书馆将于{d}起延长开放时间，周一至周五上午九点到晚上九点，周末照常，节假日另行通知。",
    "这条路线全长约{n}公里，沿途经过两座古桥和一片竹林，适合初学者，请自备饮用水和雨具。",
    "我把合同的第四条和第七条重新改了一遍，付款期限从三十天改成四十五天，麻烦你今晚再看一眼。",
    "昨晚的雨下得很大，东门外的低洼路段积水超过{n}厘米，早高峰时公交车临时绕行中山南路。",
    "财务提醒：{d}以前提交的报销单会在本月发放，之后提交的只能等到下个月，请注意附上原始发票。",
    "厨房里的豆腐和青菜要先吃掉，冰箱下层还有半只鸡，晚上可以炖汤，记得不要放太多盐。",
    "讲座的主题是古代地图上的海岸线，主讲人会展示{n}幅扫描件，并介绍如何用现代坐标重新标注。",
    "订单{c}已由快递员揽收，预计{d}送达，收货时请当面核对数量，如有破损可以直接拒收。",
    "孩子们在操场上放风筝，有一只蝴蝶形状的飞得特别高，线放完了还在往上，引得大家都停下来看。",
    "系统将在今晚{t}进行例行维护，时间大约{n}分钟，期间无法查询余额，也不能修改收货地址。",
    "山里的信号不太好，我到了客栈再给你回电话，照片已经传到共享相册，你可以先挑几张喜欢的。",
    "本次抽检共涉及{n}个批次，其中只有一个批次的水分含量略高于标准，企业已经主动下架并退款。",
    "列车因前方信号故障临时停车，预计晚点{n}分钟，换乘的旅客请到二号服务台办理免费改签。",
    "老师说作文不必写得很长，但要把看到的、听到的和想到的分清楚，最好用自己的话来讲。",
    "展厅入口处新装了自动检票机，凭{c}开头的电子票可以直接通行，纸质票仍走左侧的人工通道。",
    "茶园的春茶已经开采，今年雨水足，叶片比往年厚，第一批干茶约{n}公斤，主要供应本地茶馆。",
    "请把{c}号机柜的钥匙交给值班室，巡检人员会在{t}到场，更换电源模块大概需要二十分钟。",
    "邻居家的猫又跑到我们阳台上来了，这次叼走了一条小鱼干，还回头看了一眼，一点也不害怕。",
    "这份问卷一共有十二道题，大约需要{n}分钟，所有回答只用于改进服务，不会公开任何个人信息。",
    "气象台预计明天午后有雷阵雨，局部阵风可达{n}公里每小时，户外活动请尽量安排在上午，阳台花盆要收好。",
    "旧书市集在老码头的仓库里举行，摊位号从一到{n}，既有连环画和旧地图，也有修补装订的现场演示。",
    "健身房的跑步机今天坏了两台，维修师傅说要等零件{c}到货，最快也要{d}才能恢复使用。",
    "外婆把晒干的桂花装进玻璃罐，一层花一层糖，封好以后放在阴凉处，等到冬至那天再打开。",
    "停车场的收费规则有变：首小时八元，之后每小时五元，全天最高{n}元，凭购物小票可以抵扣一小时。",
    "医院的化验报告可以在自助机上打印，输入编号{c}即可，打印服务每天{t}以后暂停，请合理安排时间。",
    "我们在河边捡到一把雨伞，木头手柄上刻着一只猫头鹰，请失主到码头售票处认领，描述一下颜色就行。",
    "乐团下个月要排练一首新曲子，大提琴声部还缺一个人，每周两次，水平不限，只要能坚持就好。",
    "这批木料的含水率平均为{n}%，直接上漆容易开裂，师傅建议先在通风的棚子里放三个星期。",
    "小区西门的电梯将在{d}更换钢丝绳，施工期间请走东侧楼梯，行动不便的住户可以联系物业协助。",
    "窗外的蝉从清晨一直叫到傍晚，西瓜泡在井水里，竹椅搬到树荫下，谁也不愿意先回屋。",
    "编辑部收到{n}封来信，多数人喜欢新的栏目，也有读者指出第三版的一处地名写错了，我们已经更正。",
    "请各班在{t}之前把垃圾分类的统计表交到后勤处，厨余和可回收物要分开写，单位统一用公斤。",
    "海边的灯塔周末对外开放，一次最多上去{n}个人，楼梯又窄又陡，请穿防滑的鞋子，不要携带大件行李。",
    "机房的空调滤网每三个月清洗一次，上次清洗的日期是{d}，记录贴在{c}号柜门的内侧。",
    "修表的老人说，这只怀表走得不准并不是因为旧，而是有人给它上了太多的油，擦干净就好了。",
)
ENGLISH = (
    (
        "The morning ferry leaves at {t} from pier 4; please board ten minutes early and keep your ticket at "
        "hand."
    ),
    "Build {c} passed all {n} checks, but the upload step took longer than usual because the cache was cold.",
    (
        "Your parcel has arrived at the depot and will be delivered on {d} between noon and four in the "
        "afternoon."
    ),
    (
        "We moved the review to {t}. The agenda is short: open risks, budget for the spring, and a name for "
        "the boat."
    ),
    (
        "Heavy fog is expected along the coast until late morning. Visibility may drop below {n} metres in "
        "places."
    ),
    "The museum shop now sells prints of the harbour maps, each one numbered and signed by the workshop.",
    "Please do not reply to this message. Questions about invoice {c} can be sent through the help page.",
    "Water the tomatoes every second day, and move the young basil plants indoors when the nights turn cold.",
    "Our survey of {n} readers shows that most of them prefer large type, wide margins and fewer pictures.",
    (
        "I left the spare key with the neighbour downstairs, and the blue folder is on the shelf above the "
        "printer."
    ),
    "Gate B{n} has changed. Walk past the bakery, turn left at the clock, and follow the yellow signs.",
    "The repair took three hours and two coffees; the pump was fine, it was only a blocked filter ({c}).",
    "Subscribers receive the weekly digest on Friday at {t}, together with a short quiz and one recipe.",
    "A quiet day on the trail: {n} walkers, four dogs, one lost hat, and not a single drop of rain.",
    "Version 3.{n} adds offline search, faster page turns and a dark theme that follows the system setting.",
    "The choir rehearses on Tuesdays in the old school hall. New voices are welcome, no audition needed.",
    "Ticket {c} was closed by mistake and is open again; sorry for the noise, we are looking into it now.",
    "Breakfast is served until {t}. Guests who leave earlier can ask for a packed lunch at the front desk.",
    (
        "The lighthouse keeper wrote down {n} ships that night, two of them without lamps and one with a band "
        "on deck."
    ),
    (
        "Your reading list has {n} new titles. Three are due back on {d}; the others may be renewed twice "
        "online."
    ),
    (
        "Road works on Mill Bridge start at {t}. Cyclists can use the footpath if they dismount and mind the "
        "cables."
    ),
    (
        "The baker tried {n} kinds of flour before she was happy with the crust, and she still keeps notes on "
        "each one."
    ),
    "Please label your lunch boxes. Anything without a name or date will be thrown away on Friday afternoon.",
    "Sensor {c} reported a humidity of {n} % in the paint store, so the fans will run through the night.",
    (
        "We found the missing key in the piano. Nobody knows how it got there, but the low C sounds much "
        "better now."
    ),
    "Members may bring one guest to the summer lunch on {d}; vegetarian dishes should be ordered in advance.",
    (
        "The bus to the upper valley runs every {n} minutes at weekends and stops on request between the "
        "villages."
    ),
    (
        "Nine runners finished in under an hour. The youngest is eleven, the oldest has just turned "
        "seventy-four."
    ),
    (
        "Backup {c} ended at {t} without errors; {n} files were skipped because they had not changed since "
        "Monday."
    ),
    (
        "If the kettle clicks twice, unplug it, wait for a minute and descale it with vinegar before using it "
        "again."
    ),
)
MIXED = (
    "接口 GET /v2/orders/{c} 返回 404 时，请先检查 token 是否过期，再看 region 参数是否写成了 cn-east-{n}。",
    "下周三的 workshop 用英文讲，PPT 请提前发到共享盘 Team/Slides，文件名格式为 2024-topic-v{n}.pptx。",
    "我试了 dark mode，标题颜色是 #E6E6E6，看起来不错，但是 loading 图标在 {n}% 的时候会闪一下。",
    "酒店 Harbour Lodge 的确认号是 {c}，入住时间 {t} 以后，退房时间中午 12:00 以前，含双人早餐。",
    "Wi-Fi 名称 Bamboo-Guest，密码写在前台的小卡片上，速度大约 {n} Mbps，看 4K 视频没有问题。",
    "请在 {d} 前把 README 的中文部分补完，重点写 install、config 和 FAQ 三节，其余可以等到 v2.{n} 再说。",
    "这台相机的 ISO 范围是 100 到 25600，连拍每秒 {n} 张，电池型号 {c}，充满一次约需 95 分钟。",
    "会议纪要已上传，编号 {c}，action items 共 {n} 条，owner 和 deadline 都标在表格最后两列。",
    "周末 hiking 的集合地点是 North Gate 停车场，时间 {t}，全程 {n} km，带 2 L 水和一件 rain jacket。",
    "Excel 里的 VLOOKUP 找不到 {c}，原来是前面多了一个空格，用 TRIM 处理以后 {n} 行全部匹配上了。",
    "咖啡馆 Little Kettle 推出 oat latte，第二杯 {n}% off，活动到 {d} 为止，会员另送 cookie 一块。",
    "请把 staging 环境的 log level 调成 DEBUG，复现一次 {c} 的 bug，然后把 {t} 前后的日志发给我。",
    "航班 QX{n}08 从 Terminal 2 出发，boarding time 是 {t}，行李额 23 kg，充电宝请随身携带。",
    "新买的键盘支持 Bluetooth 和 USB-C，按 Fn + F5 切换背光，说明书第 {n} 页写错了，以官网为准。",
)
ZH_TITLES = ("本地新闻", "社区公告", "今日提醒", "系统通知", "生活随笔", "出行服务", "图书与展览", "品质生活")
EN_TITLES = (
    "Daily Digest",
    "Travel Notes",
    "Release News",
    "From the Garden",
    "Service Status",
    "Around Town",
)
NAMES = ("林小满", "Tessa Quill", "周知远", "Omar Field", "何青禾", "Ines Marlow")
LIST_ROWS = (  # label and value, parted by a bar
    "运单编号 Tracking No.|{c}",
    "支付方式 Payment|尾号 {n}{n} 储蓄卡",
    "余额 Balance|¥{n}.50",
    "步行距离 Distance|{n} km",
    "预约时间 Appointment|{d} {t}",
    "会员积分 Points|{n}0 分",
    "电子发票 E-invoice|No. {n}{n}",
    "Storage used|{n}% of 128 GB",
    "Battery health|{n}% OK",
    "室内湿度 Humidity|{n}%",
    "下次保养 Next service|{d}",
    "Flight|QX{n}08",
    "座位 Seat|{n}C 靠过道",
    "登机时间 Boarding|{t}",
    "优惠券 Coupons|{n} 张可用",
    "Reading time|{n} min",
    "最近登录 Last login|{d} {t}",
    "Order total|¥{n}.90",
    "设备编号 Device|{c}",
    "未读消息 Unread|{n} 条",
)

INVOICE_PARTIES = (
    (
        "购买方",
        "青禾湾图文设计有限公司",
        "91000000MA00QHW01X",
        "虚构市云溪区柳岸路18号 000-55501234",
        "示例银行云溪支行 6200 0000 1234 5678",
    ),
    (
        "销售方",
        "远山纸业商贸有限责任公司",
        "91000000MA00YSZ27K",
        "虚构市松原区石桥街205号 000-55509876",
        "样张银行松原支行 6200 0000 8765 4321",
    ),
)
INVOICE_ITEMS = (  # name, model, unit, unit price in fen, quantity
    ("*纸制品*复印纸", "A4 70g", "包", 2150, 40),
    ("*纸制品*铜版纸", "A3 157g", "包", 6880, 12),
    ("*文具*签字笔", "0.5mm 黑", "盒", 1860, 25),
    ("*办公设备*装订机", "ZD-310", "台", 45900, 2),
    ("*耗材*彩色墨盒", "MX-82C", "个", 13250, 8),
    ("*服务*送货安装", "市内", "次", 12000, 1),
)
INVOICE_CAPITALS = "肆仟捌佰元零玖角贰分"  # the grand total in words; the generator checks the figure

LEDGER_ENTRIES = (  # account, its name, description, the same in Chinese, counterparty
    (
        "6015",
        "Software licences",
        "Quarterly licence for the drawing software, 12 seats",
        "软件季度许可费",
        "Silverbrook Media",
    ),
    (
        "5105",
        "Freight and customs",
        "Sea freight Porto Almar to warehouse 3, container half full",
        "海运费及装卸费",
        "Almar Shipping Co.",
    ),
    (
        "5410",
        "Repairs and upkeep",
        "Replacement bearings for conveyor belt no. 2",
        "传送带轴承更换",
        "Kettle & Sons",
    ),
    (
        "4000",
        "Sales revenue",
        "Invoice for 240 oak panels, second delivery",
        "橡木板第二批货款",
        "Northgate Timber Ltd.",
    ),
    (
        "5620",
        "Travel expenses",
        "Hotel and rail tickets, trade fair in Osterwick",
        "展会差旅费报销",
        "Blue Anchor Travel",
    ),
    (
        "5430",
        "Cleaning services",
        "Cleaning of the north hall after the storm",
        "北厅清洁服务",
        "松原物业管理处",
    ),
    (
        "1210",
        "Trade receivables",
        "Refund of deposit for rented scaffolding",
        "脚手架押金退回",
        "Hollin Scaffolds Ltd.",
    ),
    ("6120", "Electricity and water", "Electricity February, meter 77-031", "二月份电费", "云溪电力服务公司"),
    (
        "5510",
        "Printing and post",
        "Printing of the spring catalogue, 5,000 copies",
        "春季目录印刷",
        "Hollin Print Works",
    ),
    ("1010", "Cash at bank", "Advance payment received for order 8841", "订单预收款", "Osterwick Fairs GmbH"),
    (
        "5230",
        "Office supplies",
        "Toner, paper and labels for the front office",
        "办公耗材采购",
        "远山纸业商贸有限责任公司",
    ),
)

RECEIPT_HEAD = ("PINE & PENNY MARKET", "27 Copper Lane, Lindmere", "Tel. 000-555-0142", "VAT ID LX 0042 7719")
RECEIPT_ITEMS = (  # name, quantity, unit price in cents
    ("Whole milk 1L", 2, 129),
    ("Rye bread 500g", 1, 345),
    ("Free range eggs 10", 1, 389),
    ("Apples Gala kg", 3, 219),
    ("Cheddar mature", 1, 475),
    ("Tomato passata", 4, 99),
    ("Spaghetti no.5", 2, 145),
    ("Olive oil 750ml", 1, 899),
    ("Dark chocolate", 3, 185),
    ("Ground coffee", 1, 649),
    ("Dish soap lemon", 1, 215),
    ("Paper towels 4x", 1, 379),
    ("Basil in pot", 1, 199),
    ("Carrier bag", 2, 20),
)
RECEIPT_FOOT = (
    "Cashier 07 Till 3",
    "You saved 1.80 today",
    "Thank you for shopping!",
    "Returns within 14 days",
)

FAXES = (
    (
        "FROM: LINDMERE TRACK OFFICE 2024-05-06 09:14 PAGE 1/3",
        (
            "To: Mr. Edwin Harrow, Pipe & Drain Works",
            "Subject: Order 24-0617, drain pipe for Millgate yard",
            "",
            "Dear Mr. Harrow,",
            "",
            (
                "Thank you for your offer of 29 April. We accept it as it stands and order 64 metres of pipe, inner "
                "diameter 200 mm, together with 22 couplings and 3 inspection shafts."
            ),
            "",
            (
                "Please deliver on Monday 3 June before 7:30 in the morning. The gate in Basin Street is 3.40 m "
                "wide; a longer vehicle has to come in from the river side. Our foreman, Mrs. Olga Penn, will meet "
                "your driver and can be reached at extension 5531."
            ),
            "",
            "The agreed price is 18,240.00 euros net. Payment follows within 30 days of delivery.",
            "",
            "Yours sincerely,",
            "Martha Lindqvist-Moor",
            "Head of Track Office",
        ),
    ),
    (
        "发件人：青禾湾图文设计有限公司 2024-05-06 10:02 PAGE 2/3",
        (
            "收件人：远山纸业商贸有限责任公司 销售部",
            "事由：关于四月份纸张交货的几点说明",
            "",
            "尊敬的陆经理：",
            "",
            (
                "贵公司四月二十二日送来的复印纸共四十包，经我方清点，数量无误，但其中三包外包装破损，"
                "边角受潮，无法正常使用。附件为现场照片，请查收。"
            ),
            "",
            (
                "希望贵公司在五月十五日之前补发三包同规格的产品，运费由贵方承担。原货我们暂时保存在仓库，"
                "等待贵方取回。其余货款已于今日汇出，金额为人民币肆仟元整。"
            ),
            "",
            "如有疑问，请致电 000-55501234，联系人：方女士。",
            "",
            "此致",
            "敬礼",
            "青禾湾图文设计有限公司 采购组",
            "二〇二四年五月六日",
        ),
    ),
    (
        "FROM: HARBOUR LODGE 海港客栈 2024-05-06 11:37 PAGE 3/3",
        (
            "Room confirmation / 订房确认单",
            "",
            "Guest / 客人：Ms. Tessa Quill",
            "Booking no. / 预订号：HL-20417",
            "Arrival / 入住：2024-06-11 (Tue)",
            "Departure / 退房：2024-06-14 (Fri)",
            "Room / 房型：双床房, quiet side, 2 guests",
            "Rate / 房价：¥468.00 per night, breakfast included",
            "Total / 合计：¥1,404.00",
            "",
            "Free cancellation until 18:00 on 9 June. 六月九日十八点以后取消，将收取第一晚房费。",
            "",
            (
                "The shuttle bus leaves the ferry pier every 20 minutes. 乘坐穿梭巴士请出示本确认单，"
                "行李较多的客人可以提前致电前台安排接送。"
            ),
            "",
            "We look forward to your stay. 期待您的光临！",
        ),
    ),
)

PHOTO_TITLE = "Community Garden Notice 社区花园告示"
PHOTO_TEXT = (
    (
        "The garden opens again on Saturday, 6 April 2024. Plots are given out by lot at 10:00 beside the tool "
        "shed. Please bring your membership card."
    ),
    (
        "社区花园将于四月六日星期六重新开放，上午十点在工具房旁抽签分配地块，请携带会员证。每户限领一块，"
        "面积约十二平方米，年费 ¥180，可用现金或扫码支付。"
    ),
    "Rules for all members:",
    "1. Water only before 8:30 or after 18:00. 浇水时间请避开中午。",
    "2. Return tools clean and dry. 工具用完请擦干放回原处。",
    "3. No fires, no loud music, dogs on a lead. 禁止明火，宠物请牵绳。",
    "4. Compost goes into bin B, plastic into bin D. 垃圾请分类投放。",
    (
        "Last year we harvested 312 kg of tomatoes, 95 kg of beans and 40 jars of honey. 去年的收成比前年多了两"
        "成，感谢所有志愿者的辛勤劳动。"
    ),
    (
        "The spring seed swap takes place on 20 April from 14:00 to 17:00. Bring labelled bags, please; "
        "unlabelled seeds cannot be accepted. 种子交换会请在袋子上写明品种和采收年份。"
    ),
    "Contact / 联系人：Wren Hallow 何青禾, phone 000-555-0188",
)

OWNER_ONLY = (
    "Members' Letter No. 12",
    (
        (
            "This one-page letter opens without a password. Its owner password only limits printing and changes, "
            "so a reader may still look at every word of it."
        ),
        (
            "The annual meeting of the Fernbank Allotment Society takes place on 14 September 2024 at 15:30 in the "
            "old pump house. Please send motions to the secretary, Mr. Alder Finch, before 31 August."
        ),
        "The yearly fee remains at 36.00 euros. Members who helped with the fence pay half.",
    ),
)
ENCRYPTED = (
    "Minutes, Confidential Session",
    (
        (
            "This page can be read only with the user password. The board of the Millgate Rowing Club met on 9 May "
            "2024; five members were present."
        ),
        (
            "The board agreed to buy the used coxed four offered by the Saint Orla boatyard for 7,850.00 euros and "
            "to keep the purchase private until the open day on 1 June."
        ),
    ),
)

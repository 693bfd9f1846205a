"""The closed set of characters that nano can read and write.

It is frozen: the order is the order of the tokens, so a change makes trained weights useless.
"""

from __future__ import annotations

from typing import Final

ASCII: Final = "".join(map(chr, range(32, 127)))
SIGNS: Final = "£€¥¢§©®™°±²³½·•×÷…–—‘’“”"
ACCENTED: Final = "áàâäãåçéèêëíîïñóòôöõúùûüßøæÉÄÖÜØ"
CHINESE_PUNCTUATION: Final = "，。：；（）、￥《》！？"
CHINESE: Final = (
    "一七万三上下不专业东个中丰临主丽么乐乙九书买事二云五交产享京人亿什今付仟代以件价任份伍众优会伟传"
    "位低住何余作佰佳使供便保信修值元充光克入全八公六兰共关兴具内册写军农冯冰准几出分刘刚创删利别到制"
    "刷前力办加务助勇包化北区医十千午华单南卡印厅厦县叁友双发取可台右号司合同名后吗否含吴告员周和咖咨"
    "品哪唐售商啡啤善器四回团园国图圆土在地圳场址均型城培增壹处备复外多大天太套女奶如妥始姓娜娟婷媒子"
    "字存孙学宁宇安宋完宏定宝实审客室家容宿密对小少尽层属山岛川州工左巧已巾币市师帮常帽干平年广庆序库"
    "应店座建开式张强录待徐微徽心志快态急性总恒息情惠意成我户房所手打扣找技折报押招拾捌据提搜操支收改"
    "放政效敏数整文料斤新方无日时昆明易星春昨是显晓普智更曹月有服朝期本术朱机李材村束条杨杭杰林果柒查"
    "标栋校核格桂桌梁梅梦械椅楼橙次欢欣款正步武毛民水永汁汉江汽沙河泉波注泰洋洗津流济浙浦浩海消涛涵淀"
    "深添清湖灯然燕版牌牙牛物状猪率玉王玖现珠班理瑞瓜瓶生用甲申电男番疑登白百皂的监盒盖盘盛目省看真知"
    "矿码研确磊示票福秀科秒租积称程税空章笔第等筑签算管箱米类粉系索红级纳纸线细经结统维绿编网罗置美耳"
    "职联肆肉股肥胡脑腐膏航艳花芳苏英苹茄茶药莞菜萧蕉蛋行街衣表袋装裤西规视角解计订训议记许设证识诚话"
    "询详说请谁调谊谢豆负财责账货购贰贵贸费赵超路身车转载辉辑输辽达迎运返远连退送递途通道邓邮郑部郭都"
    "酒采里重量金钱银销锡键镇长门闭问间阳陆陈限陕院除集雪零霞青静面鞋韩页项顺顾额飞食餐饭饮饺饼首香马"
    "验高鱼鸡鹏黄鼓鼠龙"
)
ALPHABET: Final = "\n" + ASCII + SIGNS + ACCENTED + CHINESE_PUNCTUATION + CHINESE
"""Newline first, then printable ASCII; no character twice."""

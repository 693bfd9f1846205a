"""Text that is new for every seed: words and patterns, put together by a random generator.

Everything in it is invented. Punctuation is kept to what looks different from its twin of the other
script at small sizes, so that a score tells how well glyphs are read, not which comma was meant.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

CODE_LETTERS = "ABCDEFGHKLMNPRTUVWXY"
"""Without those that print like a digit."""


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


EN_NOUNS = _words(
    "account address agenda archive balance battery bridge budget cabinet camera carrier "
    "channel chapter climate coach colour committee compass contract copper corner council "
    "counter courier courtyard cover customer deadline delivery depot design diagram district "
    "document driver editor engine envelope evening exhibit factory ferry figure folder "
    "forecast forest freight garden gateway glacier granite harbour heater hotel index industry "
    "inspector invoice island journal junction kitchen ladder landlord lantern ledger letter "
    "library machine manager manual market meadow member message meter mirror model monitor "
    "mountain museum network notebook number office orchard order package painter panel paper "
    "parcel partner passage passenger pattern payment pencil permit planet platform portrait "
    "printer profile project protocol quarter railway receipt record region register repair "
    "report reservoir review river runner sample scanner schedule school season sensor service "
    "session shelter signal station storage street student summary supplier surface survey "
    "table tariff teacher terminal theatre ticket timber tower traffic trailer tunnel vehicle "
    "village visitor voltage warehouse weather window winter workshop"
)
EN_VERBS = _words(
    "accepts adjusts answers arrives attaches borrows carries changes checks closes collects "
    "compares confirms connects copies counts delivers describes divides draws enters explains "
    "fills follows handles improves includes joins keeps leaves lists loads measures mentions "
    "moves needs notes offers opens orders passes prepares prints protects reaches receives "
    "records reduces refuses remains repeats replaces requires returns sends shows signs sorts "
    "starts stores supports tests updates uses visits"
)
EN_ADJECTIVES = _words(
    "annual average basic bright broken central clean common complete current daily distant "
    "early eastern empty exact external final foreign fresh frozen general heavy hidden hourly "
    "important inner large local lower major modern monthly narrow new northern old open outer "
    "partial plain precise previous private public quiet rapid rare recent regional remote "
    "second separate short simple small solid southern special spare stable steep third upper "
    "urgent usual western wide wooden yearly"
)
EN_LINKS = ("and", "or", "near", "after", "before", "without", "under", "behind", "from", "with", "for", "at")
EN_PLACES = _words(
    "Ashford Bexley Calder Dunmore Elmstead Farleigh Greyport Hartwell Ivybridge Kelby Langton "
    "Marwick Northam Oakley Penrose Quarndon Redmond Selwick Thornby Upwell Varley Westbrook "
    "Yarrow"
)
EN_NAMES = _words(
    "Alder Baker Carter Dawson Ellis Foster Graham Harper Irving Jensen Keller Lawson Mercer "
    "Nolan Osborn Parker Quinn Ramsey Sutton Turner Vance Walker Young"
)

ZH_NOUNS = _words(
    "订单 发票 合同 报告 计划 会议 设备 仓库 客户 产品 价格 数量 日期 地址 电话 "
    "账户 余额 部门 经理 学生 老师 医院 学校 车站 机场 公园 图书馆 博物馆 银行 "
    "超市 餐厅 酒店 街道 城市 乡村 河流 山谷 森林 海岸 天气 温度 季节 春天 夏天 "
    "秋天 冬天 早晨 下午 晚上 周末 新闻 文章 照片 视频 音乐 电影 软件 系统 网络 "
    "数据 文件 表格 图片 信息 消息 服务 质量 安全 环境 能源 交通 列车 航班 快递 "
    "包裹 水果 蔬菜 面包 牛奶 咖啡 茶叶 衣服 家具 电脑 手机 相机 屏幕 键盘 电池 "
    "机器 工厂 工程师 司机 邻居 朋友 孩子 父母"
)
ZH_VERBS = _words(
    "检查 确认 更新 保存 发送 收到 打开 关闭 修改 整理 安排 参加 准备 完成 提高 "
    "降低 支持 使用 需要 选择 介绍 讨论 记录 统计 运输 购买 出售 维修 测试 设计 "
    "建设 学习 研究 观察 比较 分析 解决 减少 增加 保护"
)
ZH_ADJECTIVES = _words(
    "新的 重要的 普通的 完整的 临时的 安静的 方便的 干净的 最近的 主要的 明亮的 "
    "古老的 现代的 特别的 简单的 稳定的 清楚的 温暖的 年轻的 全部的 剩余的 当地的 "
    "优质的 准确的"
)
ZH_OPENERS = _words(
    "今天 明天 昨天 本周 上个月 今年 去年 每天 目前 下班以后 在北京 在上海 在广州 "
    "根据通知 按照要求 为了方便 经过讨论 因为下雨 由于时间关系 在同事的帮助下"
)
ZH_SUBJECTS = _words("我们 他们 公司 工作人员 大家 管理部门 技术小组 小王 李老师 项目经理 物业中心 志愿者")
ZH_SURNAMES = "王李张刘陈杨黄赵周吴徐孙马朱胡林郭何高罗"
ZH_GIVEN = "伟芳娜敏静丽强磊军洋勇艳杰涛明超秀霞平刚桂英华玉兰"
ZH_CITIES = _words("北京 上海 广州 深圳 杭州 南京 武汉 成都 西安 重庆 天津 苏州 长沙 青岛 厦门 大连")
ZH_UNITS = _words("件 箱 台 个 套 张 本 份 米 次")


class Words:
    """A stream of words, sentences and fields from one random generator."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    # ------------------------------------------------------------------------------------- fields

    def number(self, digits: int) -> str:
        """A number of exactly so many digits."""
        return str(self.rng.randrange(10 ** (digits - 1), 10**digits))

    def amount(self, most: int = 100_000) -> str:
        """An amount of money with two decimals, below `most`."""
        return f"{self.rng.randrange(100, most * 100) / 100:.2f}"

    def date(self) -> str:
        return f"20{self.rng.randrange(18, 27)}-{self.rng.randrange(1, 13):02}-{self.rng.randrange(1, 29):02}"

    def zh_date(self) -> str:
        return f"{self.rng.randrange(1, 13)}月{self.rng.randrange(1, 29)}日"

    def clock(self) -> str:
        return f"{self.rng.randrange(7, 23):02}:{self.rng.randrange(60):02}"

    def code(self) -> str:
        """Two letters, a hyphen, five digits."""
        return "".join(self.rng.sample(CODE_LETTERS, 2)) + "-" + self.number(5)

    def en_name(self) -> str:
        return f"{self.rng.choice(CODE_LETTERS)}. {self.rng.choice(EN_NAMES)}"

    def zh_name(self) -> str:
        return self.rng.choice(ZH_SURNAMES) + "".join(self.rng.sample(ZH_GIVEN, self.rng.choice((1, 2))))

    def place(self) -> str:
        return self.rng.choice(EN_PLACES)

    def city(self) -> str:
        return self.rng.choice(ZH_CITIES)

    def unit(self) -> str:
        return self.rng.choice(ZH_UNITS)

    # ------------------------------------------------------------------------------------ phrases

    def en_item(self) -> str:
        """Two words: the name of a thing."""
        return f"{self.rng.choice(EN_ADJECTIVES)} {self.rng.choice(EN_NOUNS)}".capitalize()

    def zh_item(self) -> str:
        """Four to six characters: the name of a thing."""
        return self.rng.choice(ZH_ADJECTIVES)[:-1] + self.rng.choice(ZH_NOUNS)

    def en_title(self) -> str:
        return f"{self.place()} {self.rng.choice(EN_NOUNS)} {self.rng.choice(EN_NOUNS)}".title()

    def zh_title(self) -> str:
        return self.city() + self.rng.choice(ZH_NOUNS) + self.rng.choice(ZH_VERBS) + "通知"

    def en_sentence(self) -> str:
        """Eight to twenty words with a full stop."""
        r = self.rng
        words = ["the", r.choice(EN_ADJECTIVES), r.choice(EN_NOUNS), r.choice(EN_VERBS), "the"]
        words += [r.choice(EN_NOUNS), r.choice(EN_LINKS), r.choice(EN_ADJECTIVES), r.choice(EN_NOUNS)]
        while r.random() < 0.5 and len(words) < 18:
            words += [r.choice(EN_LINKS), "the", r.choice(EN_NOUNS)]
        ends: Sequence[Callable[[], str]] = (
            lambda: f"on {self.date()}",
            lambda: f"in {self.place()}",
            lambda: f"for {self.amount(900)} euros",
            lambda: f"as {self.en_name()} wrote",
            lambda: f"under {self.code()}",
        )
        if r.random() < 0.5:
            words.append(r.choice(ends)())
        sentence = " ".join(words)
        return sentence[0].upper() + sentence[1:] + "."

    def zh_sentence(self) -> str:
        """Fourteen to forty characters with a full stop."""
        r = self.rng
        parts = [r.choice(ZH_OPENERS) + r.choice(ZH_SUBJECTS) + r.choice(ZH_VERBS)]
        parts[0] += r.choice(ZH_ADJECTIVES) + r.choice(ZH_NOUNS)
        while r.random() < 0.6 and len(parts) < 3:
            parts.append(r.choice(ZH_VERBS) + r.choice(ZH_ADJECTIVES) + r.choice(ZH_NOUNS))
        if r.random() < 0.4:
            parts.append(f"共计{self.number(r.choice((2, 3)))}{self.unit()}")
        elif r.random() < 0.4:
            parts.append(f"截止到{self.zh_date()}")
        return "，".join(parts) + "。"

    def mixed_sentence(self) -> str:
        """A Chinese sentence with Latin words and numbers in it."""
        r = self.rng
        latin = r.choice((self.place(), self.code(), r.choice(EN_NOUNS).title()))
        return (
            f"{r.choice(ZH_OPENERS)}{r.choice(ZH_SUBJECTS)}{r.choice(ZH_VERBS)}了{latin}"
            f"{r.choice(ZH_NOUNS)}，{r.choice(ZH_VERBS)}{self.number(3)}{self.unit()}{r.choice(ZH_NOUNS)}。"
        )

    def spaced_fields(self) -> str:
        """Chinese and Latin fields in turn with spaces between, as chat and forms show them."""
        return f"{self.zh_name()} {self.clock()} {self.zh_item()} {self.code()} {self.city()} {self.place()}"

    def en_prose(self, characters: int) -> str:
        """Sentences of at least so many characters together."""
        return self._prose(self.en_sentence, characters, " ")

    def zh_prose(self, characters: int) -> str:
        return self._prose(self.zh_sentence, characters, "")

    def mixed_prose(self, characters: int) -> str:
        return self._prose(self.mixed_sentence, characters, "")

    def spaced_prose(self, characters: int) -> str:
        return self._prose(self.spaced_fields, characters, " ")

    @staticmethod
    def _prose(sentence: Callable[[], str], characters: int, gap: str) -> str:
        text = sentence()
        while len(text) < characters:
            text += gap + sentence()
        return text

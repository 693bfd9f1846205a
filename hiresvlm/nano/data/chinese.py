"""Chinese labels, and the parts of the values that stand beside them on invoices, receipts and forms."""

from __future__ import annotations

from typing import Final

from hiresvlm.nano.data.words import listed

MONEY_LABELS: Final = listed("""总金额 金额 合计 合计金额 总计 小计 价税合计 应付金额 实付金额 实收 找零 税额 不含税金额 折扣 优惠
优惠金额 运费 余额 押金 定金 付款金额 退款金额 单价 现金""")
DATE_LABELS: Final = listed(
    "日期 开票日期 订单日期 交易日期 到期日 到期日期 下单时间 出生日期 入住日期 发货日期 签订日期"
)
CODE_LABELS: Final = listed("""发票号码 发票代码 订单号 订单编号 单号 合同编号 流水号 交易号 编号 客户编号 纳税人识别号 账号
银行账号 身份证号 会员号 车牌号 房号 桌号 座位号 车次 航班号 校验码""")
COMPANY_LABELS: Final = listed("购买方 销售方 公司 公司名称 客户名称 名称 收款单位 付款单位 开户行 供应商")
PERSON_LABELS: Final = listed("姓名 联系人 收款人 付款人 复核 开票人 收银员 经办人 收货人 客户 负责人")
PHONE_LABELS: Final = listed("电话 手机 联系电话 传真 手机号码")
ADDRESS_LABELS: Final = listed("地址 收货地址 公司地址 送货地址 联系地址")
COUNT_LABELS: Final = listed("数量 件数 人数 积分 份数")
OTHER_LABELS: Final = {
    "税率": listed("3% 6% 9% 13%"),
    "付款方式": listed("现金 微信支付 支付宝 银行卡 信用卡 银行转账 刷卡"),
    "支付方式": listed("现金 微信支付 支付宝 银行卡 信用卡"),
    "单位": listed("个 件 箱 瓶 盒 袋 包 斤 千克 米 张 台 套 本 支 份 次 双"),
    "性别": listed("男 女"),
    "部门": listed("财务部 销售部 采购部 人事部 技术部 市场部 行政部 生产部 研发部"),
    "职位": listed("经理 主任 会计 出纳 工程师 助理 总监 店长"),
    "状态": listed("已完成 待付款 已发货 处理中 已取消 已退款 待审核 正常"),
    "备注": listed("无 加急 含税 请尽快发货 货到付款 已付清"),
}
TITLES: Final = listed("""增值税普通发票 增值税专用发票 电子发票 收据 收款收据 销售单 送货单 报销单 采购单 出库单 入库单 结算单
订单详情 购物小票 付款通知单 客户信息表 登记表 费用明细 申请表""")
CITIES: Final = listed("""北京 上海 广州 深圳 杭州 南京 成都 武汉 天津 重庆 西安 苏州 长沙 青岛 大连 宁波 厦门 福州 济南 合肥
郑州 昆明 东莞 无锡""")
PROVINCES: Final = listed("广东 浙江 江苏 山东 河北 河南 湖北 湖南 四川 福建 安徽 辽宁 陕西 云南 贵州 江西")
FIRM_WORDS: Final = listed("""华东 海南 新星 宏达 盛兴 瑞丰 金龙 天地 光明 信诚 恒通 永和 泰安 远航 创智 云科 中兴 大众 百佳 万家
长城 东方 明珠 顺达 佳美 正大 利民 红星 友谊 太平洋""")
FIRM_TRADES: Final = listed("""贸易 商贸 实业 电子 食品 餐饮 服务 管理 咨询 建筑 工程 物流 汽车 医药 文化传媒 科技 服装 家具 印刷
机械 信息技术""")
FIRM_KINDS: Final = listed("有限公司 有限公司 有限公司 有限责任公司 股份有限公司 集团 分公司")
SHOPS: Final = listed("超市 便利店 酒店 饭店 书店 药店 商场 餐厅 咖啡店")
BANKS: Final = listed("中国银行 工商银行 建设银行 农业银行 交通银行 招商银行")
SURNAMES: Final = "王李张刘陈杨黄赵周吴徐孙朱马胡郭林何高梁郑罗宋谢唐韩曹许邓萧冯"
GIVEN: Final = (
    "伟芳娜秀英敏静丽强磊军洋勇艳杰娟涛明超兰霞平刚桂文辉鹏飞玉红建华志国春梅晓燕婷雪梦佳欣宇浩然子涵"
)
ROADS: Final = listed("""人民路 中山路 解放路 建设路 和平路 长江路 黄河路 南京路 北京路 文化路 工业路 学院路 科技路 新华街 东大街
西湖路 朝阳路 青年路""")
DISTRICTS: Final = listed("朝阳区 海淀区 浦东新区 天河区 南山区 江北区 高新区 开发区 东城区 西湖区 鼓楼区")
PLACES: Final = listed("科技园 工业园 大厦 广场 花园 小区 商城 中心")
PRODUCTS: Final = listed("""办公用品 打印纸 复印纸 圆珠笔 笔记本 电脑 键盘 鼠标 显示器 手机 充电器 数据线 耳机 桌子 椅子 台灯
空调 冰箱 洗衣机 电视 大米 面粉 牛奶 鸡蛋 苹果 香蕉 橙子 西瓜 牛肉 猪肉 鸡肉 鱼 米饭 面条 饺子 包子 豆腐 白菜 土豆 番茄
黄瓜 青菜 红茶 绿茶 咖啡 可乐 啤酒 矿泉水 果汁 饼干 巧克力 毛巾 牙膏 牙刷 洗发水 肥皂 衣服 裤子 鞋 帽子 书包 图书 住宿费
餐费 交通费 服务费 咨询费 培训费 维修费 运输费 快递费 租金 水费 电费 会议费 材料费""")
TABLE_HEADS: Final = listed(
    """品名 商品名称 货物名称 项目 规格 型号 规格型号 单位 数量 单价 金额 税率 税额 小计 备注 序号"""
)
BUTTONS: Final = listed("""确定 取消 保存 删除 编辑 提交 返回 下一步 上一步 登录 注册 退出 搜索 设置 首页 帮助 消息 我的 用户名 密码
打开 关闭 添加 刷新 下载 上传 更多 完成 全部 查看 修改 打印 分享 复制""")
PHRASES: Final = listed("""谢谢惠顾 欢迎光临 请核对金额 请妥善保管 如有疑问请联系客服 本单一式三份 欢迎下次光临 请在有效期内使用
会员专享优惠 发票联 第一联 盖章有效 所有金额均含税 货物已收到 以上内容属实""")
DIGITS: Final = "零壹贰叁肆伍陆柒捌玖"
RANKS: Final = "拾佰仟万亿元圆角分整"
NUMERALS: Final = "零一二三四五六七八九十"
QUESTION_PARTS: Final = listed(
    "是什么 是多少 多少 请问 哪天 哪一天 什么 的 谁 哪里 在 几 多少钱 是 号码 吗 写"
)
MISCELLANEOUS: Final = listed("""年月日时分秒 星期 上午 下午 人民币 大写 小写 市区县省镇村街道路号楼层室栋单元座 无 是 否 有 不 公斤
个件箱瓶盒袋包斤千克米张台套本支份次双位元角 邮编 邮箱 网址 说明 注意 共页第 甲方 乙方 签字 盖章 左右前后内外大小多少高低
开始结束 用途 类别 等级 版本 期限 有效期 操作 时间 内容 标准 编码 数据 报告 统计 本月 上月 今日 昨日""")
PUNCTUATION: Final = "，。：；（）、￥《》！？"

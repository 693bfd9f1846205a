"""English words in rough order of frequency, by the part they play in a sentence, and the parts of names.

Typed for this project: enough for text that looks like documents. Rare words come from a system word list
where there is one (`rare_words`), and from made-up words everywhere, so that a model has to read letters.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final


def listed(text: str) -> list[str]:
    """The words of a text."""
    return text.split()


WORD_LIST: Final = Path("/usr/share/dict/words")
"""Debian's `wamerican` (SCOWL, permissive licence): read at training time only, never needed."""

DETERMINERS: Final = listed("""the the the the a a a this that each any our your their its his her no
every some all""")
PREPOSITIONS: Final = listed("""of of of in in to to for for on on with with at by by from from as into
about over under after before between through during without within until against per upon across near
since""")
CONJUNCTIONS: Final = listed("""and and and and or or but if when because while so that which who where
than unless""")
PRONOUNS: Final = listed("it it we we you you they he she I this there who someone everyone nobody")
AUXILIARIES: Final = listed("""is is is are are was was were be has have had will will would can could may
must should does did is not are not was not will not cannot has been have been will be may be can be must
be""")
ADVERBS: Final = listed("""also not only more now then here very well just still often again never always
already soon together usually almost later however therefore otherwise directly quickly clearly fully
partly once twice recently carefully exactly daily monthly annually approximately immediately separately""")
NOUNS: Final = listed("""time year people way day man thing world life hand part place case week company
system program question work government number night point home water room mother area money story fact
month lot right study book eye job word business issue side kind head house service friend father power
hour game line end member law car city community name president team minute idea body information back
parent face level office door health person art war history party result change morning reason research
girl moment air teacher force education foot boy age policy process music market sense nation plan college
interest death experience effect use class control field development role effort rate heart drug show
leader light voice wife police mind price report decision son view relationship town road arm difference
value building action season society tax director position player record paper space ground form event
official matter center couple site project activity star table need court oil situation cost industry
figure street image phone data picture practice piece land product doctor wall patient worker news test
movie north love support technology step baby computer type attention film tree source organization hair
look window culture chance brother energy period course summer plant opportunity term letter condition
choice rule south husband floor campaign material population call economy hospital church risk fire future
bank security trial language trade fish sound response wood sea tax bill invoice payment order receipt
total balance amount account delivery customer supplier contract agreement quantity item description
discount shipment package address signature date page section chapter appendix schedule notice meeting
minutes agenda budget forecast quarter revenue profit loss asset liability insurance claim premium policy
holder branch manager department employee salary holiday vacation ticket flight train station platform
seat passenger hotel booking guest breakfast dinner lunch menu coffee tea bread butter cheese milk sugar
salt pepper rice chicken beef pork salad soup cake juice wine beer bottle glass plate kitchen bathroom
bedroom garden garage roof key lock lamp chair desk shelf drawer cable screen keyboard printer scanner
battery charger network server folder file password user login profile message email attachment link
button option setting language version update error warning backup storage memory device sensor valve pump
motor engine wheel brake filter pipe screw bolt washer bracket steel copper rubber plastic cotton leather
fabric shirt jacket trousers shoe boot hat glove scarf coat pocket needle thread river lake mountain
valley forest island beach bridge harbour airport border region province county village library museum
theatre school university lecture exam degree student grade lesson exercise sample method model chart
graph column row cell axis scale error margin mean median variance theory experiment measure temperature
pressure volume weight length width height speed distance angle surface layer sheet roll box pallet carton
container truck driver route depot warehouse stock supply demand quality warranty repair return refund
deposit fee charge interest loan mortgage credit debit cash currency exchange share fund bond dividend
audit committee board chair council mayor election vote party minister treaty statute clause paragraph
witness judge lawyer evidence verdict appeal licence permit certificate registration passport visa citizen
resident landlord tenant lease rent utility electricity gas meter reading usage tariff provider
subscription plan minute call signal channel episode series author editor publisher title volume issue
article review summary abstract reference index figure footnote margin""")
VERBS: Final = listed("""make take see come know get give find think tell become show leave feel put bring
begin keep hold write stand hear let mean set meet run pay sit speak lie lead read grow lose fall send
build understand draw break spend cut rise drive buy wear choose use need call try ask work move live
believe happen include continue change watch follow stop create add allow open walk offer remember
consider appear serve expect stay reach remain suggest raise pass require report decide pull return
explain hope develop carry receive agree support produce eat cover catch describe check confirm deliver
ship order cancel refund charge approve reject submit review update install remove replace repair inspect
measure record print scan store collect sign verify calculate estimate apply register notify contact
supply complete finish issue enter select press enable disable save delete copy share upload download
connect""")
PAST: Final = listed("""made taken seen known given found told shown left brought begun kept held written
heard met paid read lost sent built drawn broken spent cut bought chosen used called asked moved included
continued changed followed stopped created added opened offered considered served expected reached raised
passed required reported decided returned explained developed carried received agreed supported produced
covered described checked confirmed delivered shipped ordered cancelled refunded charged approved rejected
submitted reviewed updated installed removed replaced repaired inspected measured recorded printed scanned
stored collected signed verified calculated estimated applied registered notified supplied completed
finished issued""")
ADJECTIVES: Final = listed("""other new good high old great big small large national young different black
long little important political bad white real best right social only public sure low early able human
local late hard major better economic strong possible whole free military true federal international full
special easy clear recent certain personal open red difficult available likely short single medical
current wrong private past foreign fine common poor natural significant similar hot dead central happy
serious ready simple left physical general environmental financial blue democratic dark various entire
close legal religious cold final main green nice huge popular traditional cultural annual monthly weekly
daily net gross additional applicable valid due outstanding partial total fixed variable average minimum
maximum direct original electronic digital mobile remote secure standard premium basic extra heavy light
dry wet soft round square flat narrow wide deep empty clean dirty quiet loud slow quick rapid cheap
expensive fresh frozen sweet bitter warm cool modern ancient rural urban southern northern eastern western
internal external upper lower front rear technical commercial industrial domestic confidential mandatory
optional temporary permanent previous following next last first second third""")
FIRST_NAMES: Final = listed("""James Mary Robert Patricia John Jennifer Michael Linda David Elizabeth
William Barbara Richard Susan Joseph Jessica Thomas Sarah Charles Karen Daniel Nancy Matthew Lisa Anthony
Betty Mark Margaret Donald Sandra Steven Ashley Paul Kimberly Andrew Emily Joshua Donna Kenneth Michelle
Kevin Carol Brian Amanda George Dorothy Edward Melissa Ronald Deborah Wei Ling Ahmed Fatima Olga Ivan
Pierre Amélie José María Jürgen Björn Zoë Noah Oliver Lukas Hannah Priya Arjun Yusuf Chloe Sofia Mateo
Hugo Ines Anton Kofi Ama Siti Hassan Nur Farah Kumar Devi Tan Mei Xiu Hana Kenji Yuki""")
LAST_NAMES: Final = listed("""Smith Johnson Williams Brown Jones Garcia Miller Davis Rodriguez Martinez
Hernandez Lopez Gonzalez Wilson Anderson Thomas Taylor Moore Jackson Martin Lee Perez Thompson White
Harris Sanchez Clark Ramirez Lewis Robinson Walker Young Allen King Wright Scott Torres Nguyen Hill Flores
Green Adams Nelson Baker Hall Rivera Campbell Mitchell Carter Roberts Chen Wang Zhang Liu Kaur Singh Patel
Khan Ali Müller Schmidt Weber Fischer Dubois Laurent Rossi Bianchi Novak Kowalski Ivanov Petrov Jensen
Hansen Larsen O'Brien McDonald MacLeod Fraser Okafor Mensah Tanaka Suzuki Abdullah Rahman Ismail Lim Ong
Goh Teoh Yap Nair Fernández Peña Gómez""")
CITIES: Final = listed("""London Paris Berlin Madrid Rome Vienna Dublin Oslo Boston Chicago Denver Seattle
Austin Houston Phoenix Dallas Portland Atlanta Toronto Montréal Vancouver Sydney Melbourne Auckland
Singapore Jakarta Bangkok Manila Mumbai Delhi Shanghai Beijing Tokyo Osaka Seoul Cairo Lagos Nairobi
Zürich Genève München Köln Hamburg Leipzig Dresden Lyon Lille Porto Lisbon Bristol Leeds York Cardiff
Glasgow Edinburgh Springfield Riverside Greenville Fairview Salem Madison Georgetown Arlington Ashland
Dover Hudson Milton Newport Oxford Johor Bahru Kuala Lumpur Penang Ipoh Melaka Klang""")
STREETS: Final = listed("""Main High Church Park Station Mill Oak Maple Cedar Pine Elm Washington Lake
Hill Walnut Spring North South West East River Sunset Highland Franklin Jefferson Lincoln Victoria Albert
King Queen Market Bridge School Garden Meadow Forest Harbour Castle Abbey Chapel Orchard Willow""")
STREET_KINDS: Final = listed("""Street St Road Rd Avenue Ave Lane Drive Way Court Square Boulevard Terrace
Close""")
COMPANY_KINDS: Final = listed("""Ltd Ltd. Inc. LLC GmbH Corp. PLC Group Co. Partners Holdings AG
BV Trading Supplies Services Foods Logistics Systems Electronics Textiles Motors Books Bakery
Hardware Enterprise Restaurant Stationery Pharmacy Furniture Tools Optics Media""")
COMPANY_WORDS: Final = listed("""Northern Global United Pacific Atlantic Summit Apex Delta Alpha Omega
Prime Golden Silver Blue Green Red Star Sun Moon River Stone Iron Oak Eagle Falcon Lion Harbour Metro City
Royal Crown Classic Fresh Quick Smart Bright Clear Pure Grand Central First National Universal Vertex Nova
Orion Zenith Quantum Pioneer Heritage Liberty Evergreen Lakeside Hillside Popular Perfect Gardenia
Unihakka""")
PRODUCTS: Final = """Paper A4 80g|Ball pen blue|Stapler|Printer toner|USB cable 2m|HDMI adapter|Desk
lamp|Office chair|Notebook A5|Whole milk 1L|Brown bread|Butter 250g|Cheddar cheese|Free range eggs|Orange
juice|Green tea|Black coffee|Cappuccino|Chicken rice|Fried noodles|Beef burger|French fries|Caesar
salad|Tomato soup|Chocolate cake|Mineral water|Cola 330ml|Bananas|Apples red|Potatoes
2kg|Onions|Carrots|Rice 5kg|Spaghetti|Olive oil|Sea salt|Shampoo|Tooth paste|Hand soap|Kitchen
roll|Batteries AA|Light bulb 9W|Screwdriver|Wood screws|Paint white|Brush 50mm|Masking tape|Garden
hose|Work gloves|Cotton shirt|Wool socks|Rain jacket|Running shoes|Phone case|Power bank|Memory card
64GB|Wireless mouse|Keyboard|Monitor 27"|Webcam|Headphones|Delivery|Installation|Consulting|Software
licence|Annual support|Training day|Web hosting|Car wash|Parking|Fuel diesel|Engine oil|Brake pads|Room
rate|Breakfast|Late checkout|Airport transfer|Service charge|Gift card|Magazine|Postage stamps""".replace(
    "\n", " "
).split("|")
UNITS: Final = listed("kg g mg km m cm mm l ml h min s kW kWh MB GB pcs % °C V A Hz km/h")
MONTHS: Final = listed("""January February March April May June July August September October November
December""")
DAYS: Final = listed("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")

_ONSETS: Final = listed("""b c d f g h j k l m n p qu r s t v w x y z bl br ch cl cr dr fl fr gl gr ph pl
pr sc sh sk sl sm sn sp st str sw th tr tw wh""")
_VOWELS: Final = listed("a e i o u a e i o ai ea ee ie oa oo ou y")
_CODAS: Final = (
    listed("b ck d ff g l ll m n nd ng nk nt p r rd rk rm rn rt s sh ss st t tch th v w x z") + [""] * 12
)
SYLLABLES: Final = (_ONSETS, _VOWELS, _CODAS)


@cache
def rare_words() -> tuple[str, ...]:
    """ASCII words of 4 to 14 letters of the system word list; empty where no list is installed."""
    if not WORD_LIST.is_file():
        return ()
    words = WORD_LIST.read_text(encoding="utf-8").split()
    return tuple(word for word in words if word.isascii() and word.isalpha() and 4 <= len(word) <= 14)

"""Memories in the scripts of the world: found by a word inside, in either normal form, and taught like any other."""

from __future__ import annotations

import shutil
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import Opener

import evokey
from evokey.expanders.units import normal
from evokey.inspect import doctor
from evokey.keys.keywords import Keywords
from evokey.loop.novelty.reading import read
from evokey.verifiers.words import contains, every, squad, words


@dataclass(frozen=True)
class Family:
    texts: tuple[str, str, str, str]
    words: tuple[str, str, str, str]
    """For each text a word of it, as somebody would type it."""
    lesson: str
    """A question with words of its own, whose answer is the last text."""


FAMILIES = {
    "latin": Family(
        (
            "Mein Résumé liegt schon beim Café an der Straße.",
            "La niña comió una piña en el jardín de su abuela.",
            "Příliš žluťoučký kůň úpěl ďábelské ódy.",
            "Người Việt Nam uống cà phê sữa đá mỗi buổi sáng.",
        ),
        ("STRASSE", "piña", "kůň", "cà phê"),
        "gì đánh thức bạn dậy",
    ),
    "cyrillic": Family(
        (
            "Библиотека открыта каждый день, кроме воскресенья.",
            "Врач прописал новое лекарство от кашля.",
            "П’ять кішок сплять на дивані.",
            "Поезд на Москву отправляется в семь часов утра.",
        ),
        ("библиотеки", "лекарства", "п'ять", "поезда"),
        "когда уедет электричка",
    ),
    "greek": Family(
        (
            "Η ΟΔΟΣ ΑΘΗΝΩΝ ΕΙΝΑΙ ΚΛΕΙΣΤΗ ΣΗΜΕΡΑ.",
            "Το νοσοκομείο βρίσκεται δίπλα στο πάρκο.",
            "Ο μάγειρας ετοιμάζει ψάρι με λεμόνι.",
            "Τα παιδιά παίζουν ποδόσφαιρο στην αυλή του σχολείου.",
        ),
        ("οδός", "νοσοκομεία", "λεμόνια", "ποδοσφαίρου"),
        "άθλημα με μπάλα για μικρούς",
    ),
    "devanagari": Family(
        (
            "मेरी किताब मेज़ पर रखी है।",
            "कल बारिश होने की संभावना है।",
            "रेलगाड़ी दिल्ली से सुबह छह बजे चलती है।",
            "माँ ने रसोई में स्वादिष्ट खाना बनाया।",
        ),
        ("किताबें", "बारिश", "दिल्ली", "मां"),
        "भोजन किसने पकाया",
    ),
    "bengali": Family(
        (
            "আমার বইটি টেবিলের উপর আছে।",
            "আজ খুব বৃষ্টি হচ্ছে।",
            "ট্রেন সকাল ছয়টায় ছাড়ে।",
            "মা রান্নাঘরে মাছ রান্না করছেন।",
        ),
        ("বইটি", "বৃষ্টি", "ট্রেন", "মাছ"),
        "কে খাবার বানায়",
    ),
    "tamil": Family(
        (
            "என் புத்தகம் மேசையில் உள்ளது.",
            "இன்று கனமழை பெய்யும்.",
            "ரயில் காலை ஆறு மணிக்கு புறப்படும்.",
            "அம்மா சமையலறையில் மீன் சமைக்கிறார்.",
        ),
        ("புத்தகங்கள்", "கனமழை", "ரயில்", "மீன்"),
        "உணவு யார் செய்வது",
    ),
    "arabic": Family(
        (
            "وَضَعَ الطَّالِبُ الكِتَابَ عَلَى الطَّاوِلَةِ.",
            "ستهطل الأمطار غدًا في الشمال.",
            "يغادر القطار المحطة في الساعة السادسة.",
            "طبخت أمي سمكًا لذيذًا في المطبخ.",
        ),
        ("كتاب", "الامطار", "قطــار", "سمك"),
        "من أعد طعام العشاء",
    ),
    "persian": Family(
        (
            "کتاب‌های من روی میز است.",
            "فردا در شمال باران می‌بارد.",
            "قطار ساعت شش صبح حرکت می‌کند.",
            "مادرم در آشپزخانه ماهی پخت.",
        ),
        ("كتاب", "باران", "قطار", "ماهی"),
        "چه کسی شام درست کرد",
    ),
    "hebrew": Family(
        (
            "הַסֵּפֶר מֻנָּח עַל הַשֻּׁלְחָן.",
            "מחר ירד גשם בצפון.",
            'הרכבת של צה"ל יוצאת בשש בבוקר.',
            "אמא בישלה דג טעים במטבח.",
        ),
        ("הספר", "גשם", "צה״ל", "דג"),
        "מי הכין ארוחת ערב",
    ),
    "thai": Family(
        (
            "หนังสือของฉันอยู่บนโต๊ะในห้องสมุด",
            "พรุ่งนี้ฝนจะตกหนักทางภาคเหนือ",
            "รถไฟไปเชียงใหม่ออกเวลาหกโมงเช้า",
            "คุณแม่ทำแกงปลาอร่อยมากในครัว",
        ),
        ("หนังสือ", "ฝน", "เชียงใหม่", "แกงปลา"),
        "มื้อเย็นมีอะไรกิน",
    ),
    "khmer": Family(
        ("សៀវភៅរបស់ខ្ញុំនៅលើតុ", "ថ្ងៃស្អែកនឹងមានភ្លៀងធ្លាក់", "រថភ្លើងចេញដំណើរនៅម៉ោងប្រាំមួយ", "ម្តាយខ្ញុំចម្អិនត្រីនៅផ្ទះបាយ"),
        ("សៀវភៅ", "ភ្លៀងធ្លាក់", "រថភ្លើង", "ត្រី"),
        "អាហារពេលល្ងាចជាអ្វី",
    ),
    "burmese": Family(
        ("ကျွန်တော့်စာအုပ်က စားပွဲပေါ်မှာရှိတယ်။", "မနက်ဖြန် မိုးရွာမယ်။", "ရထားက မနက်ခြောက်နာရီမှာထွက်တယ်။", "အမေက မီးဖိုချောင်မှာ ငါးချက်နေတယ်။"),
        ("စာအုပ်", "မိုးရွာ", "ရထား", "ငါးချက်"),
        "ညစာ ဘယ်သူပြင်သလဲ",
    ),
    "chinese": Family(
        (
            "我的书放在图书馆的桌子上。",
            "明天北方会下大雨。",
            "开往上海的火车早上六点出发。",
            "妈妈在厨房里做了一条好吃的鱼。",
        ),
        ("图书馆", "下雨", "上海火车", "鱼"),
        "晚饭谁准备",
    ),
    "japanese": Family(
        (
            "私の本は図書館の机の上にあります。",
            "明日は北部で大雨が降るでしょう。",
            "ｼﾝｶﾝｾﾝは午前六時に東京駅を出発します。",
            "母は台所でおいしい魚料理を作りました。",
        ),
        ("図書館", "大雨", "シンカンセン", "魚"),
        "夕飯の支度",
    ),
    "korean": Family(
        (
            "제 책은 도서관 책상 위에 있습니다.",
            "내일 북부 지방에 비가 많이 내립니다.",
            "서울로 가는 기차는 아침 여섯 시에 출발합니다.",
            "어머니께서 부엌에서 맛있는 생선을 요리하셨습니다.",
        ),
        ("도서관에서", "비는", "기차를", "생선"),
        "저녁밥 누가 차렸나",
    ),
    "georgian": Family(
        (
            "ჩემი წიგნი მაგიდაზე დევს.",
            "ხვალ ჩრდილოეთში წვიმა მოვა.",
            "მატარებელი დილის ექვს საათზე გადის.",
            "დედამ სამზარეულოში თევზი მოამზადა.",
        ),
        ("წიგნი", "ᲬᲕᲘᲛᲐ", "მატარებელი", "თევზი"),
        "ვახშამი ვინ გააკეთა",
    ),
    "armenian": Family(
        (
            "Իմ գիրքը սեղանի վրա է։",
            "Վաղը հյուսիսում անձրև կգա։",
            "Գնացքը մեկնում է առավոտյան ժամը վեցին։",
            "Մայրս խոհանոցում ձուկ պատրաստեց։",
        ),
        ("ԳԻՐՔԸ", "անձրև", "գնացքը", "ձուկ"),
        "ընթրիքն ով սարքեց",
    ),
    "mixed": Family(
        (
            "在MacBook上安装Python需要先下载安装包。",
            "iPhoneの電池を交換する方法を説明します。",
            "Wi-Fi 비밀번호를 재설정하는 방법입니다.",
            "ＳＡＰ系统的发票ＰＤＦ怎么导出？",
        ),
        ("python安装", "iphone 電池", "wi-fi 비밀번호", "SAP发票"),
        "打印账单",
    ),
    "emoji": Family(
        ("Tonight 🍕 at home", "We booked ✈ and 🏖️ for July", "The 🐶 sleeps 👍🏽", "Happy birthday 🎂 to you"),
        ("🍕", "🏖", "👍", "🎂"),
        "anniversary wishes",
    ),
}
FORMS = ("NFC", "NFD")


def written(family: Family, form: str) -> list[evokey.Document]:
    return [evokey.Document(str(at), unicodedata.normalize(form, text)) for at, text in enumerate(family.texts)]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", FAMILIES)
def test_a_text_is_found_by_a_word_inside_and_by_what_was_taught(name: str, form: str, opened: Opener) -> None:
    family = FAMILIES[name]
    memory = opened(encoder="bm25")
    memory.add(written(family, form))
    for at, word in enumerate(family.words):
        for other in FORMS:
            found = [hit.id for hit in memory.search(unicodedata.normalize(other, word))]
            assert found[:1] == [str(at)], (word, found)
    memory.feedback(unicodedata.normalize(form, family.lesson), relevant=["3"])
    assert memory.evolve().published
    for other in FORMS:
        assert memory.search(unicodedata.normalize(other, family.lesson))[0].id == "3"


def test_a_memory_of_the_first_format_keeps_its_words_until_it_is_encoded_again(tmp_path: Path, opened: Opener) -> None:
    """The memory here was written before words had marks in them."""
    shutil.copytree(Path(__file__).parent / "fixtures" / "earlier" / "chunks", tmp_path / "kb")
    file = tmp_path / "kb" / "evokey.toml"
    assert "format = 1" in file.read_text()
    memory = opened()
    memory.add(written(FAMILIES["devanagari"], "NFC"))
    assert memory.search("ब")[0].id in {"0", "1", "2", "3"}  # the letters of किताब apart, as it was
    memory.feedback("भोजन किसने पकाया", relevant=["3"])
    memory.evolve()
    memory.close()
    assert "format = 1" in file.read_text()
    lessons = opened().stats().lessons
    opened().close()
    doctor.reencode(tmp_path / "kb")
    assert "format = 2" in file.read_text()
    memory = opened()
    assert memory.stats().lessons == lessons
    assert not memory.search("ब")
    assert memory.search("किताबें")[0].id == "0" and memory.search("भोजन किसने पकाया")[0].id == "3"


def test_a_word_that_most_documents_hold_is_no_keyword_in_any_script(opened: Opener) -> None:
    memory = opened(encoder="bm25", keys={"name": "keywords", "count": 1})
    topics = "किताबें बारिश दिल्ली रसोई मछली बगीचा साइकिल परीक्षा दवाइयाँ हाथी".split()
    memory.add([evokey.Document(f"{topic}{at}", f"ज़रूरी सूचना: {topic}", "पत्र") for at in range(3) for topic in topics])
    assert not memory.search("सूचना")
    assert memory.search("बारिश")[0].id.startswith("बारिश")


def test_keywords_of_unspaced_texts_are_short() -> None:
    class Corpus:
        documents = 1

        def frequency(self, word: str) -> int:
            return 1

    text = "รถไฟไปเชียงใหม่ออกเวลาหกโมงเช้าจากสถานีกลางกรุงเทพทุกวันยกเว้นวันอาทิตย์" * 2
    (found,) = Keywords().rows(evokey.Document("1", text, "รถไฟ"), Corpus())
    phrases = found.text.removeprefix("รถไฟ. ").split(", ")
    assert len(phrases) > 1 and all(not unicodedata.category(phrase[0]).startswith("M") for phrase in phrases)


@pytest.mark.parametrize("made", [normal, words, every, squad, lambda text: read(text).fold], ids=range(5))
@pytest.mark.parametrize("name", [name for name in FAMILIES if name != "emoji"])
def test_normal_forms_of_a_text_compare_equal_everywhere(name: str, made: Callable[[str], object]) -> None:
    for text in FAMILIES[name].texts:
        assert made(unicodedata.normalize("NFD", text)) == made(unicodedata.normalize("NFC", text))


def test_words_with_vowel_signs_are_read_and_compared_whole() -> None:
    assert [word.text for word in read("मेरी किताब कहाँ है").words] == ["मेरी", "किताब", "कहाँ", "है"]
    assert normal("किताब, हिन्दी!") == "किताब हिन्दी"
    assert words("မြန်မာ ខ្មែរ বাংলা") == ["မြ", "န်", "မာ", "ខ្មែ", "រ", "বাংলা"]
    assert contains(words("เมืองหลวงคือกรุงเทพมหานคร"), words("กรุงเทพ"))
    assert words("שָׁלוֹם كِتَابٌ") == words("שלום كتاب")

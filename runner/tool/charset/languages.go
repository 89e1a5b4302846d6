package charset

import (
	"strings"
	"unicode"
)

// all are the languages that Guess knows: about thirty, in the scripts that have encodings of their own.
var all = map[string]language{
	"en": latin("éèêïñöüçàâ", "the of and to in is for that with are on you this be or not", ""),
	"de": latin("äöüßéà", "der die das und ist nicht ein eine mit für von zu den im auf sie wir ich "+
		"bitte wird sich dem", ""),
	"fr": latin("éèêàçùâîôûëïüœæÿ", "le la les de des et un une est pas pour que qui dans vous nous sur "+
		"au ce avec du", "kw"),
	"es": latin("áéíóúñü¿¡ºª", "el la los las de que y en un una es por para con no se del su más al lo", "kw"),
	"pt": latin("ãõáéíóúâêôçàºª", "o a os as de que e do da em um uma para com não se no na por mais é", "kwy"),
	"it": latin("àèéìòùî", "il la lo gli le di che e un una per non è con del della sono si da in al", "jkwxy"),
	"nl": latin("ëéïèöüóê", "de het een en van is dat niet op te in voor met zijn we u aan die er om", ""),
	"sv": latin("åäöé", "och att det som en är på för med av den till inte om ett har vi de kan jag", "qwz"),
	"da": latin("æøåé", "og at det som en er på for med af den til ikke om et har vi de kan jeg", "qwxz"),
	"nb": latin("åøæéòô", "og at det som en er på for med av den til ikke om et har vi de kan jeg", "qwxz"),
	"fi": latin("äöå", "ja on ei se että oli hän en mutta tai kun niin ovat me voi joka mitä myös kuin "+
		"ole", "qwxzcb"),
	"is": latin("áðéíóúýþæö", "og að er í á það sem við en ekki til um með var ég hann fyrir af því eru", "cqwz"),
	"pl": latin("ąćęłńóśźż", "i w na z do nie się że to jest o po dla za jak od ale są przez oraz", "qvx"),
	"cs": latin("áčďéěíňóřšťúůýž", "a v na se je že s do z to pro o ve jsem jako po za by si není jsou", "qwx"),
	"sk": latin("áäčďéíĺľňóôŕšťúýž", "a v na sa je že s do z to pre o vo som ako po za by si nie sú", "qwx"),
	"hu": latin("áéíóöőúüű", "a az és hogy nem is egy ez meg de van el csak ha vagy már mint kell volt", "qwx"),
	"hr": latin("čćđšž", "i u na je se da za od su s o ne to koji kao bi ili iz po nije smo", "qwxy"),
	"sl": latin("čšž", "in v na je se da za od so s o ne to ki kot bi ali iz po ni smo", "qwxy"),
	"ro": latin("ăâîșțşţ", "și şi de la în a nu o cu pe un că să este din pentru o mai care sunt va", "kqwy"),
	"tr": latin("çğıöşüâîİi̇", "ve bir bu da de için ile ne çok var daha gibi olarak o kadar sonra "+
		"değil mi ben size", "qwx"),
	"lt": latin("ąčęėįšųūž", "ir į iš kad yra su bet kaip ar ne tai už po nuo apie mes jis prie buvo būti", "qwx"),
	"lv": latin("āčēģīķļņšūž", "un ir no uz ka ar par kas bet vai tā nav pie lai mēs kā to es viņš arī", "qwxy"),
	"et": latin("äöõüšž", "ja on ei et see ta oli kui mis ka aga või oma selle nii meie ma siis kas palun", "cqwxyz"),
	"vi": {letters: weights("ăâđêôơưàáèéìíòóùúýãõ\u0300\u0301\u0303\u0309\u0323₫", ""), words: set("và là của có cho " +
		"không các một người được trong với này")},

	"ru": script("оеаинтсрвлкмдпуяыьгзбчйхжш", "юцщэфёъ", unicode.Cyrillic,
		"и в не на что с по это как к из мы вы для за у от но я он она они был же"),
	"uk": script("оаиніветрсклудмпяьзгбчхйї", "жцшюєщфґ'", unicode.Cyrillic,
		"і в не на що з до це як та ви ми для за у від але я він вона вони був же є й"),
	"bg": script("аиоентрсвлдкмпузябъгчцжхщ", "шюйфь", unicode.Cyrillic,
		"и на да се от в за не по с е че са като до ще при или ние вие това"),
	"sr": script("аоиентрсјвдукмплгзбчш", "цхжфњћђљџ", unicode.Cyrillic,
		"и у је на да се за од не су са о то који као би или из по није смо"),
	"el": script("αοιετσνηυρπκμλςωδγχθφάέήίόύώ", "βξζψϊϋΐΰ", unicode.Greek,
		"και το του της η ο να τα με για την από σε στο που είναι δεν θα οι των"),
	"he": script("אבגדהוזחטיכלמנסעפצקרשתםןךףץ", "", unicode.Hebrew,
		"של את על לא זה עם הוא אני כל היא גם אם או כי יש אנחנו"),
	"ar": script("اليمنوتربدعسفهكحقجشطصخذضءأإآةىئثزغؤظ", "", unicode.Arabic,
		"في من على إلى أن هذا التي الذي مع عن لا ما هو هي كان هذه"),
	"fa": script("ایمنوتربدسفهکحقجشطصخذضءأآئثزغؤظعپچژگل", "ي ك", unicode.Arabic,
		"و در به از که این را با است برای آن یک تا بر هم ما"),
	"th": script("กขคงจชซญดตถทธนบปผพฟภมยรลวศสหอะาำเแโใไั็่้์ิีึืุู", "ฆฉฎฐฑณฝษฮๆฯ๊๋", unicode.Thai, ""),

	"ja": ideographs(kana + "日本人大年一会社月中国出時長行分上生子間東見前高金部合方書名員電話料確認送願致様御用株式定期回答場所地新入力事者同手業品予週請求注文報告資料議"),
	"zh": ideographs("的一是不了在人有我他这中大来上个国到说们为子和你地出道也时年得就那要下以生会自着去之过家学对可她里后小么心多天而能好都然没日于起还发成事只作当想看文无开手十用主行方" +
		"又如前所本见经头面公同三已老从动两长知民样现分将外但身些与高意进把法此实回二理美点月明其种声全工己话儿者向情部正名定女问力机给等几很业最间新什打便位因重被走电四第门相次东政海口使教西再平真听世气信北少" +
		"关并内加化由却代军产入先山五太水万市体别处总场师书比住员请您件价格谢收货款合计划务报表单交需要确认金额联系附订购品量"),
	"tw": ideographs("的一是不了在人有我他這中大來上個國到說們為子和你地出道也時年得就那要下以生會自著去之過家學對可她裡後小麼心多天而能好都然沒日於起還發成事只作當想看文無開手十用主行方" +
		"又如前所本見經頭面公同三已老從動兩長知民樣現分將外但身些與高意進把法此實回二理美點月明其種聲全工己話兒者向情部正名定女問力機給等幾很業最間新什打便位因重被走電四第門相次東政海口使教西再平真聽世氣信北少" +
		"關並內加化由卻代軍產入先山五太水萬市體別處總場師書比住員請您件價格謝收貨款合計劃務報表單交需要確認金額聯繫附訂購品量"),
	"ko": ideographs("이다는에을의가고하은를기지도로사한아나자인리어대들시서일수그부정있스해라원제장보전면주으게상과구동" +
		"생성만여요안와소니조무진오국용관년물신내모것문없연세위했방말중공되었계결실행우간선분경발출할러마였드당적개명음업회님습까금합습감확납품월차"),
}

// kana are the syllables of Japanese. They are half of every Japanese text.
const kana = "あいうえおかきくけこさしすせそたちつてとなにぬねのはひふへほまみむめもやゆよらりるれろわをんがぎぐげござじずぜぞだでどばびぶべぼぱぴぷぺぽっゃゅょ" +
	"アイウエオカキクケコサシスセソタチツテトナニヌネノハヒフヘホマミムメモヤユヨラリルレロワヲンガギグゲゴザジズゼゾダデドバビブベボパピプペポッャュョー"

func latin(letters, words, absent string) language {
	return language{letters: weights(letters, ""), words: set(words), absent: absent}
}

func script(letters, rare string, table *unicode.RangeTable, words string) language {
	l := language{letters: weights(letters, rare), script: func(r rune) bool { return unicode.Is(table, r) }}
	if words != "" {
		l.words = set(words)
	}
	return l
}

func ideographs(letters string) language {
	return language{letters: weights(letters, ""), script: isIdeograph, large: true}
}

// isIdeograph reports whether r is a character of Chinese, Japanese or Korean.
func isIdeograph(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana)
}

// weights returns the weights of frequent and of rare letters.
func weights(frequent, rare string) map[rune]float64 {
	all := map[rune]float64{}
	for _, r := range rare {
		all[r] = rareLetter
	}
	for _, r := range frequent {
		all[r] = frequentLetter
	}
	return all
}

func set(words string) map[string]bool {
	s := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		s[w] = true
	}
	return s
}

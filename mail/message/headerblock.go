package message

import (
	"slices"
	"strings"
	"unicode/utf8"

	"journeyman/store/pattern"
)

// headerNames has the names of the fields that mail programs show above a quoted mail, by
// their meaning. A block of fields with other names is found by its values: see evidence.
var headerNames = map[string]string{
	"absender": "from", "afsender": "from", "afzender": "from", "avsender": "from", "avsändare": "from",
	"da": "from", "dari": "from", "de": "from", "de la": "from", "eskuindik": "from", "expeditor": "from",
	"expéditeur": "from", "feladó": "from", "fra": "from", "from": "from", "frá": "from", "från": "from",
	"gönderen": "from", "gửi từ": "from", "iš": "from", "kimden": "from", "küldő": "from",
	"lähetaja": "from", "lähettäjä": "from", "mittente": "from", "nadawca": "from", "nga": "from",
	"nork": "from", "nuo": "from", "od": "from", "odesílatel": "from", "odosielateľ": "from",
	"pošiljatelj": "from", "remetente": "from", "remitente": "from", "saatja": "from", "từ": "from",
	"van": "from", "von": "from", "šalje": "from", "απο": "from", "από": "from", "від": "from",
	"відправник": "from", "от": "from", "отправитель": "from", "подател": "from",
	"מאת": "from", "إرسال بواسطة": "from", "از": "from", "المرسل": "from",
	"فرستنده": "from", "من": "from", "प्रेषक": "from", "จาก": "from",
	"发件人": "from", "发信人": "from", "寄件人": "from", "寄件者": "from", "差出人": "from",
	"發件人": "from", "送信者": "from", "보낸 사람": "from", "보낸사람": "from",
	"보낸이":     "from",
	"bidalia": "date", "data": "date", "data i godzina": "date", "date": "date", "date d'envoi": "date",
	"dato": "date", "datum": "date", "datum slanja": "date", "datums": "date", "dată": "date",
	"dikirim": "date", "dátum": "date", "elküldve": "date", "enviada em": "date", "enviado": "date",
	"enviado el": "date", "enviado em": "date", "enviat": "date", "envoyé": "date", "envoyé le": "date",
	"fecha": "date", "gesendet": "date", "gönderildi": "date", "gönderilme tarihi": "date", "inviato": "date",
	"išsiųsta": "date", "kuupäev": "date", "lähetetty": "date", "ngày": "date", "nosūtīts": "date",
	"odesláno": "date", "odoslané": "date", "poslano": "date", "päivämäärä": "date", "päiväys": "date",
	"saadetud": "date", "sendt": "date", "sent": "date", "skickat": "date", "tanggal": "date", "tarih": "date",
	"trimis": "date", "verzonden": "date", "wysłano": "date", "đã gửi": "date", "ημ/νία": "date",
	"ημερομηνία": "date", "στάλθηκε": "date", "дата": "date",
	"изпратено": "date", "надіслано": "date", "отправлено": "date",
	"послато": "date", "נשלח": "date", "תאריך": "date", "ارسال شده": "date",
	"التاريخ": "date", "تاريخ": "date", "تاریخ": "date", "تم الإرسال": "date",
	"तारीख": "date", "दिनांक": "date", "भेजा गया": "date",
	"วันที่": "date", "ส่งแล้ว": "date", "傳送時間": "date",
	"发送日期": "date", "发送时间": "date", "寄件日期": "date", "寄件時間": "date",
	"日付": "date", "日期": "date", "送信日時": "date", "날짜": "date", "보낸 날짜": "date",
	"보낸날짜": "date",
	"a":    "to", "aan": "to", "alıcı": "to", "an": "to", "cc": "to", "címzett": "to", "către": "to",
	"destinataire": "to", "destinatario": "to", "destinatário": "to", "do": "to", "empfänger": "to",
	"kam": "to", "kellele": "to", "kepada": "to", "kime": "to", "kome": "to", "komu": "to", "kopie": "to",
	"kopija": "to", "másolatot kap": "to", "odbiorca": "to", "para": "to", "prima": "to", "saaja": "to",
	"til": "to", "till": "to", "to": "to", "tới": "to", "vastaanottaja": "to", "à": "to", "đến": "to",
	"προς": "to", "до": "to", "кому": "to", "получатель": "to", "אל": "to",
	"إلى": "to", "به": "to", "گیرنده": "to", "प्रति": "to", "ถึง": "to",
	"宛先": "to", "收件人": "to", "收件者": "to", "받는 사람": "to", "받는사람": "to",
	"aihe": "subject", "assumpte": "subject", "assunto": "subject", "asunto": "subject", "betreff": "subject",
	"chủ đề": "subject", "efni": "subject", "emne": "subject", "gaia": "subject", "konu": "subject",
	"objet": "subject", "oggetto": "subject", "onderwerp": "subject", "perihal": "subject",
	"predmet": "subject", "předmět": "subject", "subiect": "subject", "subject": "subject",
	"subjek": "subject", "teema": "subject", "tema": "subject", "temat": "subject", "temats": "subject",
	"tiêu đề": "subject", "tárgy": "subject", "tēma": "subject", "ämne": "subject",
	"θέμα": "subject", "относно": "subject", "тема": "subject", "נושא": "subject",
	"الموضوع": "subject", "موضوع": "subject", "विषय": "subject",
	"หัวเรื่อง": "subject", "เรื่อง": "subject", "主旨": "subject",
	"主題": "subject", "主题": "subject", "件名": "subject", "제목": "subject",
}

// A field is a line "name: value" above a quoted mail.
type field struct {
	meaning string // of the name: from, date, to or subject; "" for any other name
	value   string
}

// maxFields is how many lines a block of fields may have.
const maxFields = 12

// parseField returns the field that a line shows. Programs write the names of fields in bold letters, and some
// put a space or a full-width colon behind them.
func parseField(line string) (field, bool) {
	if len(line) > maxLine {
		return field{}, false
	}
	line = strings.ReplaceAll(withoutMarks(line), "：", ":")
	name, value, found := strings.Cut(line, ":")
	name = strings.TrimSpace(name)
	if !found || !fieldName.Compiled().MatchString(name) || utf8.RuneCountInString(name) > 25 ||
		strings.HasPrefix(value, "//") {
		return field{}, false
	}
	return field{headerNames[strings.ToLower(name)], strings.Trim(value, " \t|")}, true
}

// fieldName matches up to three words without digits.
const fieldName pattern.Pattern = `^\pL[\pL\pM'’./-]*( [\pL\pM'’./-]+){0,2}$`

// withoutMarks returns a line without the marks of Markdown, and without those that set the direction of
// writing.
func withoutMarks(line string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		switch {
		case r == '*', r == '\\', r >= '\u202a' && r <= '\u202e', r >= '\u2066' && r <= '\u2069',
			r == '\u200e', r == '\u200f', r == '\u061c':
			return -1
		}
		return r
	}, strings.Trim(line, "| \t")))
}

// fieldsAt returns the fields with which lines begin, and the number of their lines.
func fieldsAt(lines []string) (fields []field, length int) {
	for n := 0; n < min(len(lines), maxFields); n++ {
		line := lines[n]
		f, ok := parseField(line)
		switch {
		case ok && len(fields) == 0 && f.value == "":
			return nil, 0 // it introduces the lines below it
		case ok:
			fields, length = append(fields, f), n+1
		case len(fields) == 0:
			return nil, 0
		case line == "" && n+1 < len(lines) && n == length: // some programs write each field as a paragraph
			if f, ok := parseField(lines[n+1]); !ok || f.meaning == "" {
				return fields, length
			}
		// A long list of recipients has several lines.
		case len(line) <= maxLine && strings.Contains(line, "@") && !strings.HasPrefix(line, ">"):
			length = n + 1
		default:
			return fields, length
		}
	}
	return fields, length
}

// isHeaderBlock reports whether the lines from i on begin with the header of a mail, as programs show it above a
// quote, in any language, perhaps below a rule.
func (s *splitter) isHeaderBlock(lines []string, i int) bool {
	begin, rule := i, 0
	if rule = ruleAt(lines[i]); rule > 0 {
		if isForwardMark(lines[i]) {
			return false
		}
		for begin++; begin < len(lines) && begin < i+3 && (lines[begin] == "" || ruleAt(lines[begin]) > 0); begin++ {
		}
		if begin == len(lines) {
			return false
		}
	}
	if dashedWord.Compiled().MatchString(lines[i]) && headerWithoutColons(lines[begin:]) {
		return true
	}
	fields, length := fieldsAt(lines[begin:])
	least := 3
	if rule > 0 {
		least = 2
	}
	if len(fields) < least || rule == 0 && firstText(lines[begin+length:]) == "" {
		return false // a quoted mail has a text
	}
	return s.quotes(fields, rule)
}

// headerWithoutColons reports whether lines begin with an address, and have a date with a time soon after it.
func headerWithoutColons(lines []string) bool {
	return hasAddress(lines[0]) && slices.ContainsFunc(lines[:min(len(lines), 5)], hasTime)
}

// Patterns of rules, and of the words between dashes above a quoted mail.
const (
	longRule   pattern.Pattern = `^(_{8,}|-{8,}|—{8,})$`
	shortRule  pattern.Pattern = `^([-_—]{3,}|\* \* \*|\*{3,})$`
	dashedWord pattern.Pattern = `^-{3,}\s?[^-\s][^-]{0,60}-{3,}$`
)

// ruleAt returns how much a line speaks for a quoted mail below it.
func ruleAt(line string) int {
	if len(line) < 3 || len(line) > maxLine || strings.IndexByte("_-*\\\xe2", line[0]) < 0 {
		return 0
	}
	line = strings.ReplaceAll(line, "\\", "")
	switch {
	case longRule.Compiled().MatchString(line), dashedWord.Compiled().MatchString(line):
		return 2
	case shortRule.Compiled().MatchString(line):
		return 1
	}
	return 0
}

// signs are what distinguishes the header of a quoted mail from the lines of an author.
type signs struct {
	names       int  // different meanings of the names, 0 without an author
	timed       bool // a value is a date with a time
	address     bool // the author of the quoted mail has an address, and is not the author of this one
	author      bool // another field names the author of this mail
	subject     bool // another field is the subject of this mail
	participant bool // the mail is sent to the author of the quoted mail
}

func (s *splitter) signsOf(fields []field) (found signs) {
	meanings := map[string]bool{}
	for i, f := range fields {
		if f.meaning != "" {
			meanings[f.meaning] = true
		}
		found.timed = found.timed || hasTime(f.value)
		if i == 0 || f.meaning == "from" {
			found.address = found.address || hasAddress(f.value) && !s.isAuthor(f.value)
			continue
		}
		found.author = found.author || s.isAuthor(f.value)
		found.subject = found.subject || s.isSubject(f.value)
	}
	if meanings["from"] {
		found.names = len(meanings)
	}
	found.participant = s.namesRecipient(fields[0].value)
	return found
}

// quotes reports whether the fields are the header of a quoted mail. Authors write lists of such lines, too: an
// order, a form, a note of a journey. Two things distinguish a header: it names people of the conversation or its
// subject, and several of its values look like those of a header.
func (s *splitter) quotes(fields []field, rule int) bool {
	found := s.signsOf(fields)
	score := rule + max(0, found.names-1)
	for _, is := range []bool{found.timed, found.address, found.author, found.subject, found.subject, found.participant} {
		if is {
			score++
		}
	}
	least := 3
	if !s.reply {
		least = 4 // the mail answers none, so a quote is improbable
	}
	person := (found.names > 1 || rule > 0) && (found.address || found.author)
	return score >= least && (person || found.participant || found.subject)
}

// isAuthor reports whether the value of a field names the author of the mail.
func (s *splitter) isAuthor(value string) bool {
	h := s.header
	if h.From != "" && strings.Contains(strings.ToLower(value), h.From) {
		return true
	}
	name := wordsOf(h.FromName)
	return utf8.RuneCountInString(name) > 4 && strings.Contains(wordsOf(value), name) // with the two spaces
}

// namesRecipient reports whether the value of a field names somebody to whom the mail is sent.
func (s *splitter) namesRecipient(value string) bool {
	if !strings.Contains(value, "@") {
		return false
	}
	value = strings.ToLower(value)
	return slices.ContainsFunc(s.header.To, func(to string) bool {
		local, domain, _ := strings.Cut(to, "@")
		local, _, _ = strings.Cut(local, "+") // the address of a task is one of its worker
		return domain != "" && strings.Contains(value, local+"@"+domain)
	})
}

// isSubject reports whether the value of a field is the subject of the mail, which is an answer.
func (s *splitter) isSubject(value string) bool {
	own := s.header.Subject
	return s.reply && utf8.RuneCountInString(plainSubject(own)) > 2 &&
		strings.EqualFold(plainSubject(value), plainSubject(own))
}

// plainSubject returns a subject without the marks of answers and forwards.
func plainSubject(subject string) string {
	for range 10 {
		at := replySubject.Compiled().FindStringIndex(subject)
		if at == nil {
			break
		}
		subject = subject[at[1]:]
	}
	return OneLine(subject)
}

// Patterns of the values of fields, in the digits of any script.
const (
	digit   pattern.Pattern = `\p{Nd}`
	clock   pattern.Pattern = `(^|[^\p{Nd}.])\p{Nd}{1,2}([:.：hH時时點点]|시 ?)\p{Nd}{2}([^\p{Nd}.]|\.?$|\.\s)`
	date    pattern.Pattern = `(^|\P{Nd})\p{Nd}{4}(\P{Nd}|$)|\p{Nd}{1,2}[./-]\p{Nd}{1,2}[./-]\p{Nd}{2,4}`
	address pattern.Pattern = `[<\[(]\s*(mailto:)?[^<>\s@\[\]]+@[^<>\s@\[\]]+[>\])]`
)

// hasTime reports whether a text has a date and a time of the day.
func hasTime(text string) bool {
	return len(text) <= maxLine && digit.Compiled().MatchString(text) && date.Compiled().MatchString(text) &&
		clock.Compiled().MatchString(text)
}

// hasAddress reports whether a text has an address in brackets.
func hasAddress(text string) bool {
	return len(text) <= maxLine && strings.Contains(text, "@") && address.Compiled().MatchString(text)
}

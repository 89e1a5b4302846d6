package message

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"journeyman/store/pattern"
)

// authoredText returns the part of a text that its author has added to the conversation: the text
// without quoted mails above or below it, and without a signature. It keeps forwarded mails, and
// quotes between answers, which need them as context. If nothing would be left, it returns the
// whole text.
func authoredText(text string, forward bool) string {
	text = cleanLines(text)
	lines := strings.Split(text, "\n")
	var kept, forwarded []string
	if !forward && !mayQuote(text) {
		kept = cutSignature(lines) // as for most mail, which needs no slow pattern
	} else if at := forwardStart(lines, forward); at >= 0 {
		kept, forwarded = cutSignature(lines[:at]), lines[at:]
	} else {
		kept = cutSignature(cutQuotes(cutHistory(lines)))
	}
	own := strings.TrimSpace(strings.Join(kept, "\n"))
	if len(forwarded) > 0 {
		own = strings.TrimSpace(own + "\n\n" + strings.Join(forwarded, "\n"))
	}
	if own == "" {
		return strings.TrimSpace(text)
	}
	return own
}

// mayQuote reports whether a text may hold another mail. A line above each such mail names its
// author, ends with a colon or a dash, or marks a forward; or the lines of the mail begin with ">".
func mayQuote(text string) bool {
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimRight(line, " \t*_")
		if line == "" {
			continue
		}
		switch last := line[len(line)-1]; {
		case line[0] == '>', last == ':', last == '-', strings.HasSuffix(line, "："):
			return true
		case (strings.IndexByte(line, ':') >= 0 || strings.Contains(line, "：")) && headerName(line) == "from":
			return true
		case len(line) < 60 && forwardMark.Compiled().MatchString(line):
			return true
		}
	}
	return false
}

// forwardSubject matches the beginning of the subject of a forwarded mail, in the
// languages of common mail programs.
const forwardSubject pattern.Pattern = `(?i)^\s*(\[[^\]]*\]\s*)?(fwd?|wg|tr|rv|i|enc|doorst|vs|vb|pd|ynt|ilt|转发|轉寄|転送)\s*:`

func isForward(subject string) bool { return forwardSubject.Compiled().MatchString(subject) }

// forwardMark matches the line above a forwarded mail.
const forwardMark pattern.Pattern = `(?i)^[\s*_-]*(begin forwarded message|forwarded (message|by)|original message follows|` +
	`weitergeleitete nachricht|anfang der weitergeleiteten (nachricht|e-mail)|message transf[ée]r[ée]|` +
	`d[ée]but du message (transf[ée]r[ée]|r[ée]exp[ée]di[ée])|` +
	`mensaje reenviado|inicio del mensaje reenviado|messaggio inoltrato|inizio messaggio inoltrato|mensagem encaminhada|` +
	`doorgestuurd bericht|begin doorgestuurd bericht|vidarebefordrat (meddelande|mejl)|videresendt (melding|besked)|` +
	`przekazana wiadomo[śs][ćc]|пересылаемое сообщение|переслан\S* сообщени\S|转发的邮件|已转发邮件|` +
	`転送メッセージ|転送された)[^\n]{0,40}?[\s*_:-]*$`

// forwardStart returns the index of the line at which a forwarded mail begins. It returns -1 if
// there is none, and the number of lines if a forward has no such line.
func forwardStart(lines []string, forward bool) int {
	for i, line := range lines {
		if forward {
			line = strings.TrimLeft(line, "> ") // Apple Mail quotes the mark, too
		}
		if len(line) < maxLine && forwardMark.Compiled().MatchString(line) {
			return i
		}
	}
	if !forward {
		return -1
	}
	for i := range lines {
		if isHistory(lines, i) {
			return i
		}
	}
	return len(lines)
}

// originalMark matches the line that some programs write above the mail they answer.
const originalMark pattern.Pattern = `(?i)^[\s*_-]*(original (message|appointment)|reply (message|above this line)|` +
	`urspr[üu]ngliche nachricht|originalnachricht|message d'origine|message original|mensaje original|` +
	`messaggio originale|mensagem original|oorspronkelijk bericht|` +
	`ursprungligt meddelande|opprinnelig melding|oprindelig meddelelse|alkuper[äa]inen viesti|wiadomo[śs][ćc] oryginalna|` +
	`исходное сообщение|原始邮件|原始郵件|元のメッセージ)[\s*_:-]*$`

// cutHistory removes an older mail without quote marks from the end.
func cutHistory(lines []string) []string {
	for i := range min(len(lines), maxSearched) {
		if isHistory(lines, i) {
			return lines[:i]
		}
	}
	return lines
}

// isHistory reports whether the lines from i on are an older mail without quote marks.
func isHistory(lines []string, i int) bool {
	line := lines[i]
	if len(line) < maxLine && strings.ContainsAny(line, "-_*") && originalMark.Compiled().MatchString(line) {
		return true
	}
	if isHeaderBlock(lines[i:]) {
		return true
	}
	n := attribution(lines[i:], attributionSentence.Compiled())
	if n == 0 {
		n = attribution(lines[i:i+1], attributionEnd.Compiled())
	}
	if n == 0 {
		return false
	}
	// cutQuotes handles quote marks below the sentence.
	rest := firstText(lines[i+n:])
	return rest != "" && !strings.HasPrefix(rest, ">")
}

// firstText returns the first line that is not blank.
func firstText(lines []string) string {
	for _, l := range lines {
		if l = strings.TrimSpace(l); l != "" {
			return l
		}
	}
	return ""
}

// Limits of the search for quotes. Mails of people are within them, and a program must not make the
// search slow.
const (
	maxSearched = 5000 // lines
	maxBlocks   = 200  // quotes
	maxLine     = 500  // bytes of a line that is compared with a pattern
)

// headerNames has the names of the fields that mail programs show above a quoted mail, by
// their meaning.
var headerNames = map[string]string{
	"from": "from", "von": "from", "de": "from", "da": "from",
	"van": "from", "från": "from", "fra": "from", "lähettäjä": "from",
	"od": "from", "от": "from", "发件人": "from", "寄件者": "from",
	"差出人": "from", "보낸 사람": "from", "kimden": "from", "expéditeur": "from",
	"sent": "date", "date": "date", "gesendet": "date", "datum": "date",
	"envoyé": "date", "enviado": "date", "enviado el": "date",
	"fecha": "date", "inviato": "date", "data": "date", "verzonden": "date",
	"skickat": "date", "sendt": "date", "dato": "date",
	"lähetetty": "date", "wysłano": "date", "дата": "date", "отправлено": "date",
	"发送时间": "date", "日期": "date", "寄件日期": "date",
	"送信日時": "date", "日付": "date", "보낸 날짜": "date", "date d'envoi": "date",
	"to": "to", "an": "to", "à": "to", "para": "to", "a": "to", "aan": "to",
	"till": "to", "til": "to", "do": "to", "кому": "to", "收件人": "to",
	"宛先": "to", "받는 사람": "to", "vastaanottaja": "to", "cc": "to",
	"subject": "subject", "betreff": "subject", "objet": "subject",
	"asunto": "subject", "oggetto": "subject", "assunto": "subject",
	"onderwerp": "subject", "ämne": "subject", "emne": "subject", "aihe": "subject",
	"temat": "subject", "тема": "subject", "主题": "subject",
	"主旨": "subject", "件名": "subject", "제목": "subject",
}

// isHeaderBlock reports whether the lines begin with the header of a mail, as programs
// show it above a quote: an author, and two more fields within a few lines.
func isHeaderBlock(lines []string) bool {
	if headerName(lines[0]) != "from" {
		return false
	}
	found := map[string]bool{}
	for n, line := range lines[:min(len(lines), 10)] {
		if n > 0 && found["date"] && found["subject"] { // the block may end here
			break
		}
		if name := headerName(line); name != "" {
			found[name] = true
		} else if line != "" && len(found) < 2 && !strings.Contains(line, "@") {
			return false
		}
	}
	return found["date"] && (found["to"] || found["subject"]) || found["to"] && found["subject"]
}

// headerName returns the meaning of the field that a line shows, or an empty string.
func headerName(line string) string {
	if len(line) > maxLine {
		return ""
	}
	name, _, found := strings.Cut(strings.TrimSpace(strings.NewReplacer("*", "", "：", ":").Replace(line)), ":")
	if !found || utf8.RuneCountInString(name) > 15 {
		return ""
	}
	return headerNames[strings.ToLower(strings.TrimSpace(name))]
}

// Patterns of the sentence above a quote, "On <date>, <name> wrote:", in the languages of common
// mail programs. The first pattern also matches the beginning of the sentence.
const (
	attributionSentence pattern.Pattern = `(?i)^\s*(on|le|el|il|em|op|am|den|dne|dnia|w dniu|в|на|ke|pe|ti|ma|på|d\.|kl\.|om) .*` +
		`(wrote|a écrit|escribió|ha scritto|escreveu|schreef|schrieb|geschrieben|skrev|napsala?|pisze|napisał(\(?a\)?)?|пишет|` +
		`написал(\(?а\)?)?|kirjoitti|het volgende geschreven|följande)[^:]{0,80}\s*[:：]\s*$`
	attributionEnd pattern.Pattern = `(?i)^\s*(.*[@<\d].* (wrote|writes|schrieb|a écrit|escribió|ha scritto|escreveu|schreef|skrev|` +
		`kirjoitti|пишет|написал(\(?а\)?)?|pisze|napisał(\(?a\)?)?)[^:]{0,40}` +
		`|.*[@<\d].*(写道|寫道|書きました|のメール|작성|님이 쓴 글)[^:：]{0,20})\s*[:：]\s*$`
)

// attribution returns the number of lines of the sentence above a quote, which may be wrapped. It
// returns 0 if the lines do not begin with such a sentence.
func attribution(lines []string, form *regexp.Regexp) int {
	joined := ""
	for n := range min(3, len(lines)) {
		line := strings.TrimSpace(lines[n])
		if line == "" || strings.HasPrefix(line, ">") {
			return 0
		}
		joined = strings.TrimSpace(joined + " " + line)
		if len(joined) > maxLine {
			return 0
		}
		// A date or an address distinguishes the sentence from the text of an author.
		if strings.ContainsAny(joined, "0123456789@") && form.MatchString(joined) {
			return n + 1
		}
	}
	return 0
}

// A block holds the lines from begin up to, but without, end.
type block struct{ begin, end int }

// quoteBlocks returns the runs of quoted lines, each with the sentence above it.
func quoteBlocks(lines []string) []block {
	var blocks []block
	for i := 0; i < len(lines) && len(blocks) < maxBlocks; i++ {
		if !strings.HasPrefix(lines[i], ">") {
			continue
		}
		b := block{begin: withAttribution(lines, i)}
		for j := i; j < len(lines) && (strings.HasPrefix(lines[j], ">") || lines[j] == ""); j++ {
			if lines[j] != "" {
				b.end = j + 1
			}
		}
		blocks = append(blocks, b)
		i = b.end - 1
	}
	return blocks
}

// withAttribution returns the line of the sentence above a quote, or begin without one.
func withAttribution(lines []string, begin int) int {
	above := begin
	for above > 0 && lines[above-1] == "" {
		above--
	}
	for _, form := range []*regexp.Regexp{attributionSentence.Compiled(), attributionEnd.Compiled()} {
		for n := 1; n <= 3 && above-n >= 0; n++ { // the sentence may be wrapped
			if attribution(lines[above-n:], form) == n {
				return above - n
			}
		}
	}
	if above > 0 && namesAuthor(lines[above-1]) {
		return above - 1
	}
	return begin
}

// namesAuthor reports whether a line is the one above a quote, in any language: it has an address
// and a digit, and ends with a colon.
func namesAuthor(line string) bool {
	return len(line) < 300 && !strings.HasPrefix(line, ">") && strings.ContainsAny(line, "0123456789") &&
		strings.Contains(line, "@") && (strings.HasSuffix(line, ":") || strings.HasSuffix(line, "："))
}

// cutQuotes removes the quote at the end of a mail, or a sole quote at its beginning. It
// keeps quotes that have answers between them.
func cutQuotes(lines []string) []string {
	blocks := quoteBlocks(lines)
	if len(blocks) == 0 || len(blocks) == maxBlocks { // with so many, the last one is unknown
		return lines
	}
	last := blocks[len(blocks)-1]
	after := cutSignature(lines[last.end:])
	if firstText(after) == "" {
		if before := lines[:last.begin]; firstText(before) != "" {
			return before
		}
		return lines // the mail is only a quote
	}
	if first := blocks[0]; len(blocks) == 1 && firstText(lines[:first.begin]) == "" {
		return lines[first.end:]
	}
	return lines
}

// mobileLine matches the line that programs add below every mail.
const mobileLine pattern.Pattern = `(?i)^[\s\[(]*((sent|get|gesendet|von meinem|diese nachricht wurde von|envoy[ée]|enviado|` +
	`inviato|verzonden|verstuurd|skickat|sendt|wysłan[oe]|отправлено)\b.{0,80}\b(iphone|ipad|android|mobile|mobil|handy|` +
	`smartphone|samsung|galaxy|blackberry|outlook|mail for windows|windows 10|yahoo|proton ?mail|fairphone|huawei|xiaomi|` +
	`mailbox|aquamail|k-9 mail|thunderbird|gmx|web\.de|fastmail|apple mail|gmail|telefon|телефона|iphone'a)\b.{0,60}|` +
	`(iphone|ipad)から送信|发自我的\s?(iphone|ipad|手机).{0,10})[\s\])]*$`

// cutSignature removes the signature (RFC 3676, section 4.3) and the line that mail programs add
// below a mail.
func cutSignature(lines []string) []string {
	for i := len(lines) - 1; i >= 0; i-- {
		line := lines[i]
		// The delimiter has lost its trailing space, so it could be a horizontal rule. A long text
		// below it is therefore no signature.
		if (line == "--" || line == "—" || line == "\\--") && len(lines)-i <= 20 {
			lines = lines[:i]
		}
	}
	for n := len(lines); n > 0; n = len(lines) {
		last := strings.TrimSpace(lines[n-1])
		if last != "" && strings.Trim(last, "_-") != "" && (len(last) > maxLine || !mobileLine.Compiled().MatchString(last)) {
			break
		}
		lines = lines[:n-1]
	}
	return lines
}

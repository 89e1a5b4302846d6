package message

import (
	"slices"
	"strings"

	"journeyman/store/pattern"
)

// A Body is the text of a mail in three parts: Text, History and Signature. Every word is in one of them; blank
// lines at their ends, and spaces at the ends of lines, are left out.
type Body struct {
	// Text is what the author has added to the conversation. It has forwarded mails, and the quotes
	// between answers, which need them as context. It is "" if the mail only quotes.
	Text string
	// History holds the older mails that the author's program has quoted below or above the text, as they
	// stand in the mail.
	History string
	// Faint reports that Text is a line which a program may have added: a part of the instruction, and not all of it.
	Faint bool
	// Signature holds the signature, and the line that mail programs add below every mail.
	Signature string

	notes *notes // about files, in Text; nil for none
}

// A splitter splits the text of one mail.
type splitter struct {
	header Header
	lines  []string
	reply  bool // the header says that the mail answers another one
}

// splitBody splits the text of a mail with the header h.
func splitBody(text string, h Header) Body {
	s := splitter{header: h, lines: strings.Split(cleanLines(text), "\n"), reply: isReply(h)}
	lines := s.lines
	var history, forwarded []string
	begin := s.historyStart(lines)
	at := s.forwardStart(lines, begin)
	switch {
	case at >= 0:
		lines, forwarded = lines[:at], lines[at:]
	case begin >= 0:
		lines, history = lines[:begin], lines[begin:]
	}
	var signature []string
	kept := lines
	if at < 0 {
		var quoted []string
		kept, quoted = s.cutQuotes(lines)
		history = append(quoted, history...)
	}
	if at == len(s.lines) { // the signature may be a part of the forwarded mail
		kept = cutMobileLine(kept)
		signature = lines[len(kept):]
	} else {
		kept, signature = s.cutSignature(kept)
	}
	own := joinLines(kept)
	if len(forwarded) > 0 {
		own = strings.TrimSpace(own + "\n\n" + joinLines(forwarded))
	}
	return Body{Text: own, Faint: isFaint(own), History: joinLines(history), Signature: joinLines(signature)}
}

// joinLines joins lines to a text. The delimiter of a signature loses its space.
func joinLines(lines []string) string {
	lines = slices.Clone(lines)
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

// replySubject matches the beginning of the subject of an answer or a forward, in any language.
const replySubject pattern.Pattern = `^\s*(\[[^\]]*\]\s*)?\pL{1,8}(\[\d+\])?\s?[:：]`

// isReply reports whether the header says that the mail answers another one.
func isReply(h Header) bool {
	return len(h.InReplyTo) > 0 || len(h.References) > 0 || replySubject.Compiled().MatchString(h.Subject)
}

// forwardSubject matches the beginning of the subject of a forwarded mail, in the
// languages of common mail programs.
const forwardSubject pattern.Pattern = `(?i)^\s*(\[[^\]]*\]\s*)?(fwd?|wg|tr|rv|i|enc|doorst|vs|vb|vl|pd|ilt|i̇lt|fs|` +
	`továbbítás|προώθ|прд|пересл|пер|हस्तांतरित|הועבר|إعادة توجيه|แปลง|trs|转发|轉寄|転送|전달)\s*[:：]`

// isForward reports whether the subject says that the mail is a forward. VS says so in Norwegian and Danish, but
// marks an answer in Finnish.
func (s *splitter) isForward() bool {
	subject := s.header.Subject
	if len(subject) > 3 && strings.EqualFold(subject[:3], "vs:") && slices.ContainsFunc(s.lines, isFinnishField) {
		return false
	}
	return forwardSubject.Compiled().MatchString(subject)
}

func isFinnishField(line string) bool { return strings.HasPrefix(withoutMarks(line), "Lähet") }

// forwardMark matches the line above a forwarded mail.
const forwardMark pattern.Pattern = `(?i)^[\s*_-]*(begin forwarded message|forwarded (message|by)|original message follows|` +
	`weitergeleitete nachricht|anfang der weitergeleiteten (nachricht|e-mail)|message transf[ée]r[ée]|` +
	`d[ée]but du message (transf[ée]r[ée]|r[ée]exp[ée]di[ée])|` +
	`mensaje reenviado|(inicio|comienzo) del mensaje reenviado|messaggio inoltrato|inizio messaggio inoltrato|` +
	`(início da )?mensagem (encaminhada|reencaminhada)|missatge reenviat|inici del missatge reenviat|mensaxe reenviada|` +
	`(begin )?doorgestuurd bericht|vidarebefordrat (meddelande|mejl|brev)|` +
	`(start på )?videresendt (melding|besked|meddelelse)|` +
	`välitetty viesti|edastatud kiri|pārsūtīt|persiųst|` +
	`(treść |początek )?przekazan(a|ej) wiadomo[śs]|wiadomo[śs][ćc] przekazana|` +
	`(začátek )?přeposlan(á|é) zpráv|(začiatok )?preposlan(á|ej) správ|továbbított (üzenet|levél)|` +
	`mesaj (transmis|redirec[țţt]ionat)|începutul mesajului redirec|` +
	`proslijeđen|prosleđen|прослеђен|posredovano sporočilo|` +
	`пересылаемое сообщение|(начало )?(переслан\S*|пересылаем\S*|переадресован\S*|перенаправлен\S*) сообщени|` +
	`(початок )?(переслан|переадресован)\S* повідомлен|препратено съобщение|` +
	`προωθημένο μήνυμα|αρχή προωθημένου|iletilen (ileti|mesaj)|yönlendirilen ileti|` +
	`הודעה (ש)?הועברה|הודעה מועברת|תחילת ההודעה שהועברה|` +
	`الرسالة (الواردة )?المُ?عاد توجيهها|رسالة (مُ?عاد توجيهها|مُ?عاد إرسالها)|` +
	`بدء الرسالة|پیام (بازارسال|هدایت)|अग्रेषित संदेश|ข้อความที่ส่งต่อ|เริ่มข้อความที่ส่งต่อ|` +
	`(bắt đầu )?thư (đã|được) chuyển tiếp|tin nhắn (đã|được) chuyển tiếp|(mulai )?pesan (yang )?(terusan|diteruskan)|` +
	`转发的?(邮件|消息|信息)|已转发邮件|开始转发的邮件|轉寄(的)?(郵件|訊息)|開始轉寄郵件|` +
	`転送メッセージ|転送された|전달된 메(시|세)지|전달한 메일)[^\n]{0,40}?[\s*_:：-]*$`

func isForwardMark(line string) bool {
	return len(line) < maxLine && forwardMark.Compiled().MatchString(line)
}

// forwardStart returns the index of the line at which a forwarded mail begins, -1 if there is none. A mark
// inside of older mails, which begin at the line history, is a part of these mails. A forward without a mark
// begins with the header of the mail, or with the text.
func (s *splitter) forwardStart(lines []string, history int) int {
	end := min(len(lines), maxSearched)
	if history >= 0 {
		end = history
	}
	for i, line := range lines[:end] {
		if isForwardMark(strings.TrimLeft(line, "> ")) &&
			(!strings.HasPrefix(line, ">") || beginsQuote(lines, i)) {
			return i
		}
	}
	switch {
	case !s.isForward():
		return -1
	case history >= 0:
		return history
	}
	return len(lines)
}

// beginsQuote reports whether a quoted line is the first of its quote, without a sentence above it. Apple Mail
// quotes forwarded mails, and their mark.
func beginsQuote(lines []string, i int) bool {
	for i > 0 && strings.HasPrefix(lines[i-1], ">") {
		if i--; strings.Trim(lines[i], "> ") != "" {
			return false
		}
	}
	return withAttribution(lines, i) == i
}

// originalMark matches the line that some programs write above the mail they answer.
const originalMark pattern.Pattern = `(?i)^[\s*_-]*(original (message|appointment)|reply (message|above this line)|` +
	`urspr[üu]ngliche nachricht|originalnachricht|message d'origine|message original|mensaje original|` +
	`messaggio originale|mensagem original|oorspronkelijk bericht|` +
	`ursprungligt meddelande|opprinnelig melding|oprindelig meddelelse|alkuper[äa]inen viesti|wiadomo[śs][ćc] oryginalna|` +
	`исходное сообщение|原始邮件|原始郵件|元のメッセージ)[\s*_:-]*$`

// historyStart returns the index of the line at which older mails without quote marks begin, -1 if there are
// none.
func (s *splitter) historyStart(lines []string) int {
	for i := range min(len(lines), maxSearched) {
		if s.isHistory(lines, i) {
			return i
		}
	}
	return -1
}

// isHistory reports whether the lines from i on are an older mail without quote marks.
func (s *splitter) isHistory(lines []string, i int) bool {
	line := lines[i]
	if line == "" || strings.HasPrefix(line, ">") {
		return false
	}
	if len(line) < maxLine && strings.ContainsAny(line, "-_*") && originalMark.Compiled().MatchString(line) {
		return true
	}
	// Some programs write the sentence or the header into the line of the mark.
	if s.isHeaderBlock(lines, i) || strings.HasPrefix(line, "---") && namesAuthor(line) && !isForwardMark(line) {
		return true
	}
	n := s.sentence(lines, i)
	if n == 0 {
		return false
	}
	// cutQuotes handles quote marks below the sentence.
	rest := firstText(lines[i+n:])
	return rest != "" && !strings.HasPrefix(rest, ">")
}

// sentence returns the number of lines of a sentence above a mail without quote marks. An author may write such a
// sentence, too: in a mail that answers none, as the first words, or about somebody to whom the mail is not sent.
func (s *splitter) sentence(lines []string, i int) int {
	if !s.reply || firstText(lines[:i]) == "" {
		return 0
	}
	if n := attribution(lines[i:], isSentence); n > 0 {
		return n
	}
	if n := attribution(lines[i:i+1], isSentenceEnd); n > 0 {
		return n
	}
	return attribution(lines[i:], func(sentence string) bool { return namesAuthor(sentence) && s.namesRecipient(sentence) })
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

func isSentence(line string) bool { return attributionSentence.Compiled().MatchString(line) }

func isSentenceEnd(line string) bool { return attributionEnd.Compiled().MatchString(line) }

// attribution returns the number of lines of the sentence above a quote, which may be wrapped. It
// returns 0 if the lines do not begin with such a sentence.
func attribution(lines []string, is func(sentence string) bool) int {
	joined := ""
	for n := range min(3, len(lines)) {
		line := withoutMarks(lines[n])
		if line == "" || strings.HasPrefix(line, ">") {
			return 0
		}
		joined = strings.TrimSpace(joined + " " + line)
		if len(joined) > maxLine {
			return 0
		}
		if !strings.HasSuffix(joined, ":") && !strings.HasSuffix(joined, "：") {
			continue
		}
		// A date or an address distinguishes the sentence from the text of an author.
		if (strings.Contains(joined, "@") || digit.Compiled().MatchString(joined)) && is(joined) {
			return n + 1
		}
		return 0 // it ends here
	}
	return 0
}

// namesAuthor reports whether a sentence has an address, a date and a time, as in the sentence above a quote
// in any language.
func namesAuthor(sentence string) bool { return hasAddress(sentence) && hasTime(sentence) }

// introducesQuote reports whether a line has an address and a number, or a date and a time. Directly above
// a quote this is enough.
func introducesQuote(line string) bool {
	return strings.Contains(line, "@") && digit.Compiled().MatchString(line) || hasTime(line)
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
	for _, is := range []func(string) bool{isSentence, isSentenceEnd, namesAuthor} {
		for n := 1; n <= 3 && above-n >= 0; n++ { // the sentence may be wrapped
			if attribution(lines[above-n:above], is) == n {
				return above - n
			}
		}
	}
	if above > 0 && attribution(lines[above-1:above], introducesQuote) == 1 {
		return above - 1
	}
	return begin
}

// cutQuotes removes the quote at the end of a mail, or a sole quote at its beginning. It
// keeps quotes that have answers between them.
func (s *splitter) cutQuotes(lines []string) (kept, quoted []string) {
	blocks := quoteBlocks(lines)
	if len(blocks) == 0 || len(blocks) == maxBlocks { // with so many, the last one is unknown
		return lines, nil
	}
	last := blocks[len(blocks)-1]
	after, _ := s.cutSignature(lines[last.end:])
	if firstText(after) == "" {
		return slices.Concat(lines[:last.begin], lines[last.end:]), lines[last.begin:last.end]
	}
	if first := blocks[0]; len(blocks) == 1 && firstText(lines[:first.begin]) == "" {
		return lines[first.end:], lines[:first.end]
	}
	return lines, nil
}

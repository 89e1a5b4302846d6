package message

import (
	"strings"
	"unicode/utf8"

	"journeyman/store/pattern"
)

// maxSignature is how many lines a signature may have.
const maxSignature = 20

// cutSignature separates the signature (RFC 3676, section 4.3), and the line that mail programs add below a mail.
func (s *splitter) cutSignature(lines []string) (kept, signature []string) {
	kept = lines
	for i := len(lines) - 1; i >= max(0, len(lines)-maxSignature-1); i-- {
		if s.beginsSignature(kept, i) {
			kept = lines[:i]
		}
	}
	kept = cutMobileLine(kept)
	return kept, lines[len(kept):]
}

// cutMobileLine removes the line that mail programs add below a mail, with the blank lines and rules around it.
func cutMobileLine(lines []string) []string {
	for n := len(lines); n > 0; n = len(lines) {
		last := strings.TrimSpace(lines[n-1])
		if last != "" && strings.Trim(last, "_-") != "" && !isMobileLine(last) {
			break
		}
		lines = lines[:n-1]
	}
	return lines
}

// beginsSignature reports whether the line i is the delimiter of a signature. Without its space it could be a
// rule between two parts of the text. Then the lines below it must name the author, or have an address or a
// number of a telephone.
func (s *splitter) beginsSignature(lines []string, i int) bool {
	switch lines[i] {
	case "-- ":
		return true
	case "--", "—", "\\--":
	default:
		return false
	}
	for _, line := range lines[i+1:] {
		if strings.HasSuffix(line, "?") {
			return false // it asks something
		}
	}
	below := strings.ToLower(strings.Join(lines[i+1:], "\n"))
	if signatureHint.Compiled().MatchString(below) {
		return true
	}
	local, _, _ := strings.Cut(s.header.From, "@")
	for _, word := range append(strings.Fields(strings.ToLower(s.header.FromName)), local) {
		if utf8.RuneCountInString(word) > 1 && strings.Contains(below, word) {
			return true
		}
	}
	return strings.TrimSpace(below) == ""
}

// signatureHint matches an address of a person or a page, and a number of a telephone.
const signatureHint pattern.Pattern = `\S@\S+\.\S|https?://|www\.|\+\d[\d ()/-]{6,}|\b0\d[\d ()/-]{6,}`

// mobileLine matches the line that programs add below every mail, in many languages. After the verb stands the word
// for "from" or "with": the author may have sent something to a maker of devices. What an author wants to get begins
// with the same word as the line of a program that offers itself, which ends with the name of a system.
const mobileLine pattern.Pattern = `(?i)^[\s\[(]*(((sent|gesendet|envoy[ée]|enviad[oa]|enviat|` +
	`inviato|verzonden|verstuurd|skickat|sendt|wysłan[oe]|odesláno|odoslané|poslano|poslato|` +
	`trimis|nosūtīts|išsiųsta|отправлено|надіслано|изпратено|στάλθηκε|εστάλη|` +
	`נשלח|تم الإرسال|أرسلت|أُرسلت|ارسال شده)` + fromWord +
	`|(lähetetty|elküldve|saadetud|भेजा|ส่งจาก|đã gửi|được gửi|gửi từ|dikirim|dihantar|ipinadala|bidalia)(\P{L}.{0,30})?)` +
	`\P{L}*` + devices + `(\pL{0,12}([^\pL:?!][^:?!]{0,60})?)` +
	`|get (the new )?(outlook|type ?app|\pL{1,12} ?mail( app)?)( app)? (for|on) (your )?` +
	`(ios|iphone|ipad|android|mac|macos|windows|mobile|desktop)` +
	`|(diese nachricht wurde |gesendet )?(von|vom|mit|über)(\P{L}.{0,40})?\P{L}` + devices +
	`(\pL{0,12}([^\pL:?!][^:?!]{0,40})?) (gesendet|geschickt|verschickt|verfasst)` +
	`|.{0,20}(iphone|ipad|galaxy|android)\S{0,12}( \S{0,14})?([dt][ae]n|r[óő]l|st[aä](ni)?|से) ` +
	`(gönderildi|küldve|lähetetty|भेजा गया|göndərilib)` +
	`|\S{0,3}(iphone|ipad|android)\S{0,3}(から送信|에서 보냄)|(나의 |내 )?(iphone|ipad|galaxy\S*|android\S*)에서 보냄|` +
	`(发自|寄自|傳送自).{0,6}\s?(iphone|ipad|手机|galaxy|android|outlook).{0,12}|` +
	`(從|从).{0,6}\s?(iphone|ipad|手机|galaxy|android|outlook).{0,6}(传送|傳送|发送|發送|寄出|发出|發出))[\s\])!.]*$`

// Parts of mobileLine.
const (
	fromWord = `\P{L}+(from|with|via|using|by|von|vom|mit|aus|über|per|de|du|d|des|del|depuis|avec|par|à partir|desde|con|` +
		`do|da|pel[oa]|com|através|a partir|amb|dal|dall[oa]|tramite|vanaf|van|met|door|från|med|fra|z|ze|zo|za|przez|` +
		`přes|cez|s|sa|iz|preko|putem|uz|din|cu|prin|no|ar|iš|su|с|со|из|от|через|з|зі|із|чрез|από|με|μέσω|` +
		`מ|מה|من|عبر|باستخدام|از)(\P{L}.{0,40})?`
	devices = `(iphon|ipad|ipod|apple watch|android|mobile|mobil|handy|` +
		`smartphone|samsung|galaxy|blackberry|outlook|mail for windows|windows|yahoo|proton ?mail|fairphone|huawei|xiaomi|` +
		`mailbox|aquamail|k-9 mail|fairemail|thunderbird|gmx|web\.de|fastmail|apple mail|gmail|telefon|телефона|` +
		`nokia|pixel|oneplus|oppo|vivo|realme|motorola|htc|sony|lg)`
)

// Patterns for languages that mobileLine does not have. The names of products, and the addresses of their pages,
// are the same in all of them.
const (
	device pattern.Pattern = `(?i)(iphon|ipad|galaxy|samsung|android|huawei|xiaomi|blackberry|outlook|windows|` +
		`yahoo|gmx|proton|k-9)`
	productPage pattern.Pattern = `(?i)https?://(aka\.ms|overview\.mail\.yahoo|mail\.onelink\.me|go\.onelink\.me)`
)

// isMobileLine reports whether a program has added the last line.
func isMobileLine(line string) bool {
	line = strings.Trim(withoutMarks(line), "_")
	if len(line) > maxLine || strings.HasSuffix(line, "?") {
		return false
	}
	words := withoutLinks(line)
	return mobileLine.Compiled().MatchString(words) || utf8.RuneCountInString(words) < 60 &&
		productPage.Compiled().MatchString(line) && device.Compiled().MatchString(words)
}

// isFaint reports whether a text is one line that names a device or a program. In an unknown language it may be the
// line that programs add, or the author's own words.
func isFaint(text string) bool {
	return text != "" && utf8.RuneCountInString(text) <= 80 && !strings.Contains(text, "\n") &&
		device.Compiled().MatchString(text)
}

// link matches the address of a page, with the marks around it.
const link pattern.Pattern = `(?i)[<(]?\b(https?://|mailto:|tel:)[^\s<>()\[\]]*[>)]?`

func withoutLinks(text string) string {
	return strings.TrimSpace(link.Compiled().ReplaceAllString(text, ""))
}

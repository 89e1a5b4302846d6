package mailfile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/matryer/is"

	"journeyman/store/ordertest"
)

// words stands for the converter of pages.
func words(page string) string {
	return strings.NewReplacer("<p>", "", "<b>", "**", "</b>", "**").Replace(page)
}

// TestEML reads mails that are files, and lists their files.
func TestEML(t *testing.T) {
	t.Parallel()
	mixed := func(parts ...string) string {
		return "From: =?iso-8859-1?q?M=FCller_=96_Ann?= <ann@example.com>\nTo: a@example.com,\n b@example.com\nCc: c@example.com\n" +
			"Date: Mon, 2 Nov 2026 10:00:00 +0100\nX-Other: x\nSubject: =?utf-8?q?Gr=C3=BC=C3?= =?utf-8?q?=9Fe?=\nMIME-Version: 1.0\n" +
			"Content-Type: multipart/mixed; boundary=\"b\"\n\nThis is MIME.\n--b\n" + strings.Join(parts, "\n--b\n") + "\n--b--\nend\n"
	}
	const fields = "From: Müller – Ann <ann@example.com>\nTo: a@example.com, b@example.com\nCc: c@example.com\n" +
		"Date: Mon, 2 Nov 2026 10:00:00 +0100\nSubject: Grüße\n\n"
	inner := "Content-Type: message/rfc822\n\nSubject: Inner\nContent-Type: multipart/mixed; boundary=i\n\n--i\n\nInner text\n--i\n" +
		"Content-Type: image/png; name=image.png\n\nPNG\n--i--"
	for name, tt := range map[string]struct{ raw, text, members string }{
		"text":            {"Subject: x\n\nHello\n", "Subject: x\n\nHello\n", ""},
		"a mailbox":       {"From ann Mon Nov  2\nSubject: x\n\nHello\n", "Subject: x\n\nHello\n", ""},
		"broken header":   {"Subject: x\nnot a field\nTo: a\n\nHello\n", "To: a\nSubject: x\n\nHello\n", ""},
		"quoted":          {"Subject: x\nContent-Type: text/plain; charset=iso-8859-1\nContent-Transfer-Encoding: quoted-printable\n\nGr=FC=DFe=\n =80 =ZZ\n", "Subject: x\n\nGrüße € =ZZ\n", ""},
		"flowed":          {"Subject: x\nContent-Type: text/plain; format=flowed\n\nOne \ntwo\n", "Subject: x\n\nOne two\n", ""},
		"base64, damaged": {"Subject: x\nContent-Transfer-Encoding: base64\n\nSGVs*bG8\n", "Subject: x\n\nHello\n", ""},
		"two forms": {mixed("Content-Type: multipart/alternative; boundary=a\n\n--a\nContent-Type: text/html\n\n<p>Page\n--a\nContent-Type: text/plain\n\nPlain\n--a--"),
			fields + "Plain\n", ""},
		"an empty form": {mixed("Content-Type: multipart/alternative; boundary=a\n\n--a\n\n \n--a\nContent-Type: text/html\n\n<p>A <b>page</b>\n--a--"),
			fields + "A **page**\n", ""},
		"files": {mixed("\nAbove", "Content-Type: application/pdf\nContent-Disposition: attachment; filename*=utf-8''L%C3%A4nge.pdf\nContent-Transfer-Encoding: base64\n\nSGVs", "\nBelow"),
			fields + "Above\n\nBelow\n\nFiles in this mail:\n- Länge.pdf (application/pdf, 3 bytes)\n", "Länge.pdf=Hel"},
		"equal names": {mixed("Content-Type: image/png; name=image.png\n\none", "Content-Type: image/png; name=Image.PNG\n\ntwo", "Content-Type: image/png; name=image.png\n\nthree"),
			fields + "Files in this mail:\n- image.png (image/png, 3 bytes)\n- Image-2.PNG (image/png, 3 bytes)\n- image-3.png (image/png, 5 bytes)\n",
			"image.png=one Image-2.PNG=two image-3.png=three"},
		"no name": {mixed("Content-Type: image/png\n\none", "Content-Type: application/x-y.z\n\ntwo"),
			fields + "Files in this mail:\n- image.png (image/png, 3 bytes)\n- attachment.bin (application/x-y.z, 3 bytes)\n", "image.png=one attachment.bin=two"},
		"a path": {mixed("Content-Type: a/b; name=\"..\\\\..\\\\etc/passwd\"\n\none"), fields + "Files in this mail:\n- passwd (a/b, 3 bytes)\n", "passwd=one"},
		"a mail": {mixed("\nLook", inner), fields + "Look\n\nFiles in this mail:\n- forwarded.eml (message/rfc822, 128 bytes)\n\n[part \"forwarded.eml\"]\nSubject: Inner\n\nInner text\n\n" +
			"Files in this mail:\n- forwarded.eml/image.png (image/png, 3 bytes)\n", "forwarded.eml=*"},
		"signed": {mixed("Content-Type: application/pkcs7-mime; name=smime.p7m\nContent-Transfer-Encoding: binary\n\n" + string(signed(der, der(tagOctets, []byte(signedText))))),
			fields + "Signed text\n", ""},
		"a signed document": {mixed("Content-Type: application/pkcs7-mime; name=a.xml.p7m\nContent-Transfer-Encoding: binary\n\n" + string(signed(der, der(tagOctets, []byte("<?xml version=\"1.0\"?>\n<a: x>"))))),
			fields + "Files in this mail:\n- a.xml.p7m (application/pkcs7-mime, 86 bytes)\n- a.xml (application/octet-stream, 28 bytes)\n", "a.xml.p7m=*a.xml=<?xml version=\"1.0\"?>\n<a: x>"},
		"encrypted": {mixed("Content-Type: application/pkcs7-mime; name=smime.p7m\nContent-Transfer-Encoding: binary\n\n" + string(der(tagSequence, der(tagOID, oidEnveloped), der(tagExplicit, der(tagSequence))))),
			fields + "[this part is encrypted (S/MIME), and there is no key here to read it]\n\nFiles in this mail:\n- smime.p7m (application/pkcs7-mime, 17 bytes)\n", "smime.p7m=*"},
		"ends early": {"Subject: x\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nHello", "Subject: x\n\nHello\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			text, err := EML(words)([]byte(tt.raw), never)
			is.NoErr(err)
			is.Equal(string(text), tt.text)
			list, err := Members([]byte(tt.raw), never)
			is.NoErr(err)
			var all []string
			for _, m := range list {
				all = append(all, m.Name+"="+string(m.Content))
			}
			if beginning, end, any := strings.Cut(tt.members, "=*"); any {
				is.True(strings.HasPrefix(strings.Join(all, " "), beginning+"="))
				is.True(strings.HasSuffix(strings.Join(all, " "), end))
				return
			}
			is.Equal(strings.Join(all, " "), tt.members)
		})
	}
	for _, raw := range []string{"", "Hello", "\x00\x01", "PK\x03\x04"} {
		_, err := EML(words)([]byte(raw), never)
		is.New(t).Equal(err, errNoMail)
	}
}

// TestEMLLimits reads mails beyond the limits.
func TestEMLLimits(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	const goesOn = "[The mail goes on, but not everything could be read.]\n"
	text, err := EML(words)([]byte("Subject: x\nContent-Type: multipart/mixed; boundary=b\n\n"+strings.Repeat("--b\n\nx\n", maxParts+5)), never)
	is.NoErr(err)
	is.True(strings.HasSuffix(string(text), goesOn))
	text, err = EML(words)([]byte("Subject: x\n\n"+strings.Repeat("a line\n", maxText/6)), never)
	is.NoErr(err)
	is.True(strings.HasSuffix(string(text), goesOn))
	ordertest.Below(is, len(text), maxText+100)
	deep := "Subject: 9\n\nDeepest"
	for i := 8; i >= 0; i-- {
		deep = fmt.Sprintf("Subject: %d\nContent-Type: message/rfc822; name=%d.eml\n\n%s", i, i, deep)
	}
	text, err = EML(words)([]byte(deep), never)
	is.NoErr(err)
	is.Equal(strings.Count(string(text), "[part "), maxMails)
	is.True(strings.Contains(string(text), "- 0.eml/1.eml/2.eml/3.eml/4.eml/5.eml (message/rfc822"))
	begun := false
	text, err = EML(words)([]byte("Subject: x\n\nHello\n"), func() bool { defer func() { begun = true }(); return begun })
	is.NoErr(err)
	is.True(strings.HasSuffix(string(text), goesOn)) // the time is over
}

// TestDocumentsOfPrograms reads the mails that .ci/documents.d makes with other programs.
func TestDocumentsOfPrograms(t *testing.T) {
	t.Parallel()
	folder := os.Getenv("JOURNEYMAN_DOCUMENTS")
	list, err := filepath.Glob(filepath.Join(folder, "mail-*.words"))
	if folder == "" || err != nil || len(list) == 0 {
		t.Skip("made by other programs: .ci/documents makes them")
	}
	for _, file := range list {
		t.Run(filepath.Base(file), func(t *testing.T) {
			is := is.New(t)
			document, err := os.ReadFile(strings.TrimSuffix(file, ".words"))
			is.NoErr(err)
			list, err := os.ReadFile(file)
			is.NoErr(err)
			text, err := EML(words)(document, never)
			is.NoErr(err)
			for word := range strings.Lines(string(list)) {
				if !strings.Contains(string(text), strings.TrimSpace(word)) {
					t.Errorf("%q is not in %q", word, text)
				}
			}
		})
	}
}

// FuzzEML reads random mails.
func FuzzEML(f *testing.F) {
	f.Add([]byte("Subject: x\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: message/rfc822\n\nTo: x\n\ny\n--b--\n"))
	f.Add(signed(der, der(tagOctets, []byte(signedText))))
	f.Add([]byte("Subject: x\nContent-Type: x/y//\n\nz"))
	f.Fuzz(func(t *testing.T, document []byte) {
		text, err := EML(words)(document, never)
		if err == nil && (!utf8.Valid(text) || len(text) > maxText+100) {
			t.Errorf("%q is no text", text)
		}
		list, _ := Members(document, never)
		names := map[string]bool{}
		for _, m := range list {
			if m.Name == "" || names[m.Name] || strings.Contains(m.Name, "/") {
				t.Errorf("%q is no name of a member", m.Name)
			}
			names[m.Name] = true
		}
	})
}

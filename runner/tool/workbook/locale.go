package workbook

import (
	"strconv"
	"strings"
)

// A locale says how a language writes numbers and dates.
type locale struct {
	decimal, group string
	date           string // format code of a short date
	months, days   []string
}

// neutral is for workbooks that name no language. Its dates are ISO dates, which nobody can confuse.
var neutral = &locale{".", ",", "yyyy\\-mm\\-dd", strings.Fields("January February March April May June July August " +
	"September October November December"), strings.Fields("Sunday Monday Tuesday Wednesday Thursday Friday Saturday")}

// A language is how a language writes numbers and dates. Its decimal separator is a comma.
type language struct{ group, date, names string }

const (
	dots   = "."
	spaces = "\u00a0"
)

// languagesByTag are the languages other than English, by their tags. Those without names show English names.
var languagesByTag = map[string]language{
	"de": {dots, "dd.mm.yyyy", "Januar Februar März April Mai Juni Juli August " +
		"September Oktober November Dezember Sonntag Montag Dienstag Mittwoch Donnerstag Freitag Samstag"},
	"fr": {"\u202f", "dd/mm/yyyy", "janvier février mars avril mai juin juillet août septembre " +
		"octobre novembre décembre dimanche lundi mardi mercredi jeudi vendredi samedi"},
	"es": {dots, "dd/mm/yyyy", "enero febrero marzo abril mayo junio julio agosto septiembre " +
		"octubre noviembre diciembre domingo lunes martes miércoles jueves viernes sábado"},
	"it": {dots, "dd/mm/yyyy", "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre " +
		"ottobre novembre dicembre domenica lunedì martedì mercoledì giovedì venerdì sabato"},
	"pt": {dots, "dd/mm/yyyy", "janeiro fevereiro março abril maio junho julho agosto " +
		"setembro outubro novembro dezembro domingo segunda-feira terça-feira quarta-feira quinta-feira sexta-feira sábado"},
	"nl": {dots, "d-m-yyyy", "januari februari maart april mei juni juli augustus september " +
		"oktober november december zondag maandag dinsdag woensdag donderdag vrijdag zaterdag"},
	"pl": {spaces, "dd.mm.yyyy", "styczeń luty marzec kwiecień maj czerwiec lipiec sierpień wrzesień " +
		"październik listopad grudzień niedziela poniedziałek wtorek środa czwartek piątek sobota"},
	"sv": {spaces, neutral.date, "januari februari mars april maj juni juli augusti september " +
		"oktober november december söndag måndag tisdag onsdag torsdag fredag lördag"},
	"ru": {spaces, "dd.mm.yyyy", "январь февраль март апрель май июнь июль август сентябрь октябрь ноябрь декабрь " +
		"воскресенье понедельник вторник среда четверг пятница суббота"},
	"cs": {spaces, "d.m.yyyy", ""},
	"fi": {spaces, "d.m.yyyy", ""},
	"sk": {spaces, "d.m.yyyy", ""},
	"uk": {spaces, "d.m.yyyy", ""},
	"hu": {spaces, "d.m.yyyy", ""},
	"tr": {dots, "dd.mm.yyyy", ""},
	"id": {dots, "dd.mm.yyyy", ""},
	"el": {dots, "dd.mm.yyyy", ""},
	"ro": {dots, "dd.mm.yyyy", ""},
	"hr": {dots, "dd.mm.yyyy", ""},
	"sl": {dots, "dd.mm.yyyy", ""},
	"sr": {dots, "dd.mm.yyyy", ""},
	"vi": {dots, "dd.mm.yyyy", ""},
	"da": {dots, "dd.mm.yyyy", "januar februar marts april maj juni juli august september " +
		"oktober november december søndag mandag tirsdag onsdag torsdag fredag lørdag"},
	"nb": {spaces, "dd.mm.yyyy", "januar februar mars april mai juni juli august september " +
		"oktober november desember søndag mandag tirsdag onsdag torsdag fredag lørdag"},
	"no": {spaces, "dd.mm.yyyy", "januar februar mars april mai juni juli august september " +
		"oktober november desember søndag mandag tirsdag onsdag torsdag fredag lørdag"},
}

// localeOf returns the locale of a language tag such as "de-CH", or nil for an unknown language.
func localeOf(tag string) *locale {
	name, region, _ := strings.Cut(strings.ToLower(tag), "-")
	if name == "en" {
		l := *neutral
		if l.date = "dd/mm/yyyy"; region == "us" || region == "" {
			l.date = "m/d/yyyy"
		}
		return &l
	}
	x, ok := languagesByTag[name]
	if !ok {
		return nil
	}
	l := locale{",", x.group, x.date, neutral.months, neutral.days}
	if region == "ch" || region == "li" {
		l.decimal, l.group, l.date = ".", "’", "dd.mm.yyyy"
	}
	if all := strings.Fields(x.names); len(all) == 19 {
		l.months, l.days = all[:12], all[12:]
	}
	return &l
}

// languages are the languages of Windows' locale numbers (MS-LCID): the low ten bits are the language.
var languages = map[int64]string{0x05: "cs", 0x06: "da", 0x07: "de", 0x08: "el", 0x09: "en", 0x0a: "es", 0x0b: "fi",
	0x0c: "fr", 0x0e: "hu", 0x10: "it", 0x13: "nl", 0x14: "nb", 0x15: "pl", 0x16: "pt", 0x18: "ro", 0x19: "ru",
	0x1a: "hr", 0x1b: "sk", 0x1d: "sv", 0x1f: "tr", 0x21: "id", 0x22: "uk", 0x24: "sl", 0x2a: "vi"}

// localeOfCode returns the locale of the text after the hyphen of [$€-407] or [$-de-DE], nil if it names none.
func localeOfCode(code string) *locale {
	code, _, _ = strings.Cut(code, ",") // a calendar may follow
	n, err := strconv.ParseInt(code, 16, 64)
	if err != nil {
		return localeOf(code)
	}
	// The bits above are the calendar and the kind of digits.
	n &= 0xffff
	region := ""
	switch n {
	case 0x0807, 0x100c, 0x0810, 0x1407:
		region = "-ch"
	case 0x0409:
		region = "-us"
	case 0x0809, 0x0c09, 0x1809:
		region = "-gb"
	}
	return localeOf(languages[n&0x3ff] + region)
}

package dashboard_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	cdpage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/matryer/is"

	"journeyman/handlers/dashboard"
	"journeyman/handlers/dashboard/dashboardtest"
)

// Tests in a real browser are named TestBrowser…. They need Chromium, and axe-core from
// .ci/node_modules. CHROMIUM names the browser, as in .ci/run; then the tests fail if a tool is
// missing. Without CHROMIUM they are skipped with a reason. CHROMIUM=off skips them, because they
// take minutes.
const (
	chromiumVariable = "CHROMIUM"
	// screenshotsVariable names the folder for pictures of all pages.
	screenshotsVariable = "SCREENSHOTS"
	axeFile             = "../../.ci/node_modules/axe-core/axe.min.js"
	// patience is the longest time that a test waits for the browser.
	patience = time.Minute
)

// A window is a window of a real browser. The test fails at its end if a page caused a problem: an
// exception, an entry in the console (such as a violation of the content security policy), an
// alert, or a request to another site.
type window struct {
	*dashboardtest.Site
	ctx context.Context
	axe string // the source of axe-core

	mu        sync.Mutex
	problems  []string
	confirmed []string // the questions that the pages asked; the answer is always yes
}

// newWindow opens a window without a session.
func newWindow(s *dashboardtest.Site) *window {
	s.T.Helper()
	chromium, axe := needChromium(s.T)
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium),
		chromedp.Flag("disable-gpu", true), chromedp.Flag("lang", "en"))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	ctx, stop := chromedp.NewExecAllocator(context.Background(), options...)
	s.T.Cleanup(stop)
	ctx, leave := chromedp.NewContext(ctx, chromedp.WithErrorf(func(string, ...any) {}))
	s.T.Cleanup(leave)
	w := &window{Site: s, ctx: ctx, axe: axe}
	s.T.Cleanup(w.clean)
	if err := chromedp.Listen(ctx, w.watch); err != nil {
		s.T.Fatalf("start %s: %v", chromium, err)
	}
	call(w, log.Enable, struct{}{})
	call(w, network.Enable, network.EnableParams{})
	w.size(1280, "light")
	return w
}

// inBrowser starts a site like dashboardtest.OnSite, and opens a window in which its owner is signed in.
func inBrowser(t *testing.T, change ...func(*dashboard.Config)) (*is.I, *dashboardtest.Site, *window) {
	t.Helper()
	is, s := dashboardtest.OnSite(t, change...)
	return is, s, newWindow(s).borrow(s.SignIn("ann@example.com"))
}

// needChromium returns the path of the browser and the source of axe-core.
func needChromium(t testing.TB) (chromium, axe string) {
	t.Helper()
	must := os.Getenv(chromiumVariable)
	if must == "off" {
		t.Skip("CHROMIUM=off: .ci/run dashboard runs the tests in a real browser")
	}
	names := []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}
	if must != "" {
		names = []string{must}
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil && chromium == "" {
			chromium = path
		}
	}
	source, err := os.ReadFile(axeFile)
	switch {
	case chromium != "" && err == nil:
		return chromium, string(source)
	case must != "":
		t.Fatalf("%s=%s: there is no such browser, or no axe-core: %v", chromiumVariable, must, err)
	case chromium == "":
		t.Skip("there is no Chromium: install it, or let .ci/run dashboard do it")
	default:
		t.Skipf("there is no axe-core: run npm ci in .ci (%v)", err)
	}
	return "", ""
}

// watch records the errors of a page. The browser library calls it for every event, so it must not
// wait.
func (w *window) watch(event any) {
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		w.note("%v", &chromedp.ExceptionError{ExceptionDetails: e.ExceptionDetails})
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError {
			w.note("console error: %v", e.Args)
		}
	case *log.EventEntryAdded:
		// A page with an error status is no problem, but a missing script or style is one. The script of a
		// file does not run in its frame, as it should be, and the browser may say so at any time.
		if strings.HasPrefix(e.Entry.Text, "Blocked script execution in") && strings.Contains(e.Entry.Text, "sandboxed") {
			return
		}
		if e.Entry.Source != log.EntrySourceNetwork || strings.Contains(e.Entry.URL, "/assets/") {
			w.note("console: %s %s", e.Entry.Text, e.Entry.URL)
		}
	case *network.EventRequestWillBeSent:
		url := e.Request.URL
		if !strings.HasPrefix(url, w.URL+"/") && !strings.HasPrefix(url, "data:") && !strings.HasPrefix(url, "chrome") {
			w.note("request to elsewhere: %s", url)
		}
	case *cdpage.EventJavascriptDialogOpening:
		if e.Type == cdpage.DialogTypeConfirm {
			w.mu.Lock()
			w.confirmed = append(w.confirmed, e.Message)
			w.mu.Unlock()
		} else {
			w.note("%s: %s", e.Type, e.Message)
		}
		go func() {
			_, _ = chromedp.Call(w.ctx, cdpage.HandleJavaScriptDialog, cdpage.HandleJavaScriptDialogParams{Accept: true})
		}()
	}
}

func (w *window) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.problems = append(w.problems, fmt.Sprintf(format, args...))
}

// clean fails the test for each error that a page made so far.
func (w *window) clean() {
	w.T.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, problem := range w.problems {
		w.T.Errorf("in the browser: %s", problem)
	}
	w.problems = nil
}

// call sends the browser a command and returns the result.
func call[P, R any](w *window, c cdp.Command[P, R], params P) R {
	w.T.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	res, err := chromedp.Call(ctx, c, params)
	if err != nil {
		w.T.Fatalf("%s: %v", c.Method, err)
	}
	return res
}

// evaluate returns the value of a JavaScript expression. It waits for a promise. The page's policy
// does not apply to it.
func evaluate[T any](w *window, expression string) (T, error) {
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if errors.Is(err, chromedp.ErrJSUndefined) || errors.Is(err, chromedp.ErrJSNull) {
		err = nil
	}
	return v, err
}

// text returns the value of a JavaScript expression as text.
func (w *window) text(expression string) string {
	w.T.Helper()
	v, err := evaluate[string](w, "String("+expression+")")
	if err != nil {
		w.T.Fatalf("%s: %v", expression, err)
	}
	return v
}

// until waits, across pages, until a JavaScript expression is true. It ignores a page whose form
// was just submitted, because the next page would drop the test's changes.
func (w *window) until(what, expression string) {
	w.T.Helper()
	deadline, tick := time.NewTimer(patience), time.NewTicker(20*time.Millisecond)
	defer deadline.Stop()
	defer tick.Stop()
	for {
		// Between two pages the expression fails: try again.
		if ok, err := evaluate[bool](w, "document.readyState === 'complete' && !window.submitted && !!("+expression+")"); err == nil && ok {
			return
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			w.T.Fatalf("waited in vain for %s at %s, where there is:\n%s", what, w.text("location.href"),
				w.text("document.body.innerText"))
		}
	}
}

// open loads the page at a path.
func (w *window) open(path string) {
	w.T.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, chromedp.Navigate(w.URL+path)); err != nil {
		w.T.Fatalf("open %s: %v", path, err)
	}
}

// sees waits until the page shows the texts.
func (w *window) sees(texts ...string) {
	w.T.Helper()
	for _, text := range texts {
		w.until("the text "+text, "document.body.innerText.includes("+quoted(text)+")")
	}
}

// lacks fails the test if the page shows one of the texts.
func (w *window) lacks(texts ...string) {
	w.T.Helper()
	for _, text := range texts {
		if w.text("document.body.innerText.includes("+quoted(text)+")") == "true" {
			w.T.Errorf("%s shows %q", w.path(), text)
		}
	}
}

// arrives waits until the window shows the page with that path, with any query.
func (w *window) arrives(path string) {
	w.T.Helper()
	w.until("the page "+path, "location.pathname === "+quoted(path))
}

// path returns the path of the window's page.
func (w *window) path() string { w.T.Helper(); return w.text("location.pathname") }

// finder defines functions that find an element by its text. An element with exactly that text
// takes precedence over one that begins with it.
const finder = `
function seen(e) { return e.checkVisibility({visibilityProperty: true}) && e.getClientRects().length > 0; }
function words(e) { return (e.getAttribute('aria-label') || e.innerText || e.value || '').trim().replace(/\s+/g, ' '); }
function named(list, name) {
	const all = [...list].filter(seen);
	return all.find((e) => words(e) === name) || all.find((e) => words(e).startsWith(name));
}
function pressable(name) {
	return named(document.querySelectorAll('button, [role=button], [role=tab]'), name)
		|| named(document.querySelectorAll('a[href], summary'), name) || named(document.querySelectorAll('label'), name);
}
function input(name) {
	const label = named(document.querySelectorAll('label'), name);
	return label ? label.control : named(document.querySelectorAll('input, textarea, select'), name);
}`

// click presses the button, link, summary or label with that text. Like a mouse, it clicks the
// topmost element at that place.
func (w *window) click(label string) {
	w.T.Helper()
	w.until("something to click that says "+label, "(() => {"+finder+"return pressable("+quoted(label)+")})()")
	at, err := evaluate[[]float64](w, `(() => {`+finder+`
		const e = pressable(`+quoted(label)+`);
		e.scrollIntoView({block: 'center', behavior: 'instant'});
		const r = e.getClientRects()[0], x = r.left + r.width / 2, y = r.top + r.height / 2;
		const top = document.elementFromPoint(x, y);
		addEventListener('submit', (s) => { window.submitted = !s.defaultPrevented; });
		addEventListener('pageshow', () => { window.submitted = false; });
		if (!top || !(e.contains(top) || top.contains(e))) throw new Error('covered by ' + (top && top.outerHTML.slice(0, 200)));
		return [x, y];
	})()`)
	if err != nil {
		w.T.Fatalf("click %s: %v", label, err)
	}
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, chromedp.MouseClickXY(at[0], at[1])); err != nil {
		w.T.Fatalf("click %s: %v", label, err)
	}
}

// fill replaces the value of the input with that label, or chooses that option of a
// select.
func (w *window) fill(label, text string) {
	w.T.Helper()
	w.until("an input labelled "+label, "(() => {"+finder+"return input("+quoted(label)+")})()")
	typed, err := evaluate[bool](w, `(() => {`+finder+`
		const e = input(`+quoted(label)+`), text = `+quoted(text)+`;
		e.focus();
		const changed = () => { for (const what of ['input', 'change']) e.dispatchEvent(new Event(what, {bubbles: true})); return false; };
		if (e.tagName === 'SELECT') {
			const option = [...e.options].find((o) => o.text.trim() === text) || [...e.options].find((o) => o.value === text);
			if (!option) throw new Error('there is no such option in: ' + [...e.options].map((o) => o.text));
			e.value = option.value;
			return changed();
		}
		if (e.type === 'text' || e.type === 'email' || e.type === 'password' || e.type === 'search' || e.type === 'url' || e.tagName === 'TEXTAREA') {
			e.select();
			if (text === '') { e.value = ''; return changed(); }
			return true;
		}
		e.value = text;
		return changed();
	})()`)
	if err != nil {
		w.T.Fatalf("fill %s: %v", label, err)
	}
	if typed {
		call(w, input.InsertText, input.InsertTextParams{Text: text})
	}
}

// choose puts files into the file input that a CSS selector finds.
func (w *window) choose(css string, files ...string) {
	w.T.Helper()
	root := call(w, dom.GetDocument, dom.GetDocumentParams{})
	node := call(w, dom.QuerySelector, dom.QuerySelectorParams{NodeID: root.Root.NodeID, Selector: css})
	call(w, dom.SetFileInputFiles, dom.SetFileInputFilesParams{Files: files, NodeID: node.NodeID})
}

// press types keys: text, or the constants of package kb.
func (w *window) press(keys string) {
	w.T.Helper()
	w.OK(chromedp.Do(w.ctx, chromedp.KeyEvent(keys)))
}

// script switches the scripts of pages off or on, from the next page on.
func (w *window) script(on bool) {
	w.T.Helper()
	call(w, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !on})
}

// borrow sets the session of a user who is signed in in another browser. It saves time in tests
// that open many pages.
func (w *window) borrow(b *dashboardtest.Browser) *window {
	w.T.Helper()
	for _, c := range b.Client.Jar.Cookies(w.Request(http.MethodGet, "", "").URL) {
		call(w, network.SetCookie, network.SetCookieParams{Name: c.Name, Value: c.Value, URL: w.URL, HTTPOnly: new(true)})
	}
	return w
}

// size sets the width of the window and the light or dark scheme.
func (w *window) size(width int64, scheme string) {
	w.T.Helper()
	call(w, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: 900, DeviceScaleFactor: 1})
	call(w, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}})
}

// look examines the page on a desktop and on a phone, in light and dark. axe-core must find no
// fault, the page must not be wider than the window, and it must be small. The folder of
// SCREENSHOTS gets pictures of it under that name.
func (w *window) look(name string) {
	w.T.Helper()
	if size := w.text("performance.getEntriesByType('navigation')[0].decodedBodySize"); len(size) > 5 || len(size) == 5 && size > fmt.Sprint(dashboardtest.MaxPage) {
		w.T.Errorf("%s: the page has %s bytes, more than %d", name, size, dashboardtest.MaxPage)
	}
	for _, width := range []int64{1280, 360} {
		for _, scheme := range []string{"light", "dark"} {
			w.size(width, scheme)
			view := fmt.Sprintf("%s at %d in %s", name, width, scheme)
			if wide := w.text("Math.max(document.documentElement.scrollWidth - innerWidth, 0)"); wide != "0" {
				w.T.Errorf("%s: the page is %s pixels wider than the window: %s", view, wide, w.text(tooWide))
			}
			w.audit(view)
			w.shoot(fmt.Sprintf("%s-%d-%s.png", name, width, scheme))
		}
	}
	w.size(1280, "light")
	w.clean()
}

// tooWide is an expression for the elements that are wider than the window.
const tooWide = `[...document.querySelectorAll('body *')].filter((e) => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest('.table, pre, .unseen'))
	.map((e) => e.tagName + '.' + e.className).slice(0, 5)`

// audit examines the page with axe-core.
func (w *window) audit(view string) {
	w.T.Helper()
	if _, err := evaluate[bool](w, "(() => { if (!window.axe) {"+w.axe+"\n}; return true; })()"); err != nil {
		w.T.Fatalf("load axe-core: %v", err)
	}
	found, err := evaluate[string](w, `axe.run(document, {resultTypes: ['violations'], iframes: false}).then((r) => JSON.stringify(r.violations.map((v) =>
		v.id + ': ' + v.help + '\n\t' + v.nodes.slice(0, 4).map((n) => n.html.slice(0, 160) + ' ' + n.any.map((a) => a.message).join('; ').slice(0, 200)).join('\n\t'))))`)
	if err != nil {
		w.T.Fatalf("axe-core: %v", err)
	}
	var violations []string
	if err := json.Unmarshal([]byte(found), &violations); err != nil {
		w.T.Fatalf("axe-core: %v", err)
	}
	for _, v := range violations {
		w.T.Errorf("%s: %s", view, v)
	}
}

// shoot takes a picture of the whole page.
func (w *window) shoot(name string) {
	w.T.Helper()
	dir := os.Getenv(screenshotsVariable)
	if dir == "" {
		return
	}
	w.OK(os.MkdirAll(dir, 0o755))
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	picture, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name), picture, 0o600)
	}
	if err != nil {
		w.T.Fatalf("picture %s: %v", name, err)
	}
}

// quoted returns a text as a JavaScript string.
func quoted(text string) string {
	b, _ := json.Marshal(text) // a string marshals
	return string(b)
}

// expect removes the errors so far that contain one of the texts, for tests that cause them.
func (w *window) expect(texts ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.problems = slices.DeleteFunc(w.problems, func(problem string) bool {
		return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(problem, text) })
	})
}

// asked returns the questions of the pages since the last call.
func (w *window) asked() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := strings.Join(w.confirmed, "\n")
	w.confirmed = nil
	return text
}

package view

import (
	"fmt"
	"strings"

	"journeyman/store"
)

// An Alert is the JSON of a message to a channel. Slack, Mattermost and others show only Text; the
// other fields are for programs.
type Alert struct {
	Text         string            `json:"text"`
	ID           string            `json:"id"`   // the same on every attempt
	Type         string            `json:"type"` // alert, or test
	CreatedAt    string            `json:"createdAt"`
	Organization AlertOrganization `json:"organization"`
	Items        []AlertItem       `json:"items"`
}

// An AlertOrganization is the organization of an Alert.
type AlertOrganization struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// An AlertItem is one event at one worker, with the number of times that it happened.
type AlertItem struct {
	Event       string  `json:"event"`
	Message     string  `json:"message"` // plain text
	Count       int64   `json:"count"`
	WorkerID    *string `json:"workerId"`
	WorkerTitle *string `json:"workerTitle"`
	TaskID      *string `json:"taskId"` // the newest task
	TaskTitle   *string `json:"taskTitle"`
	URL         *string `json:"url"`
	FirstAt     string  `json:"firstAt"`
	LastAt      string  `json:"lastAt"`
}

// Alert returns the JSON of a message.
func (b Builder) Alert(m store.AlertMessage) Alert {
	a := Alert{ID: m.ID, Type: "alert", CreatedAt: Timestamp(m.CreatedAt), Items: []AlertItem{},
		Organization: AlertOrganization{m.OrganizationID, m.Organization}}
	if m.Test {
		a.Type = "test"
	}
	lines := []string{"*" + slackText(m.Organization) + "*"}
	for _, l := range b.AlertLines(m) {
		i := l.item
		a.Items = append(a.Items, AlertItem{Event: i.Event, Message: l.Plain(), Count: i.Count,
			WorkerID: orNil(i.WorkerID), WorkerTitle: orNil(i.Worker), TaskID: orNil(i.TaskID),
			TaskTitle: orNil(i.Task), URL: orNil(l.URL), FirstAt: Timestamp(i.FirstAt), LastAt: Timestamp(i.LastAt)})
		lines = append(lines, "• "+l.slack())
	}
	a.Text = strings.Join(lines, "\n")
	return a
}

func orNil(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// An AlertLine is the sentence of an alert about one event. Link is the part that links to a page.
type AlertLine struct {
	Before, Link, After string
	URL                 string // of Link; "" without a page

	item store.AlertItem
}

// Plain returns the sentence without the address.
func (l AlertLine) Plain() string { return l.Before + l.Link + l.After }

// slack returns the sentence in Slack's mrkdwn.
func (l AlertLine) slack() string {
	if l.URL == "" {
		return slackText(l.Plain())
	}
	// In mrkdwn only ">" ends the text of a link, and slackText escapes it.
	return slackText(l.Before) + "<" + l.URL + "|" + slackText(l.Link) + ">" + slackText(l.After)
}

// slackText escapes a text by the rules of Slack. A title could otherwise hold a misleading link, or
// notify everybody in the channel with "<!channel>". Mattermost also interprets Markdown and
// "@all": a zero-width space makes them plain text.
func slackText(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "@", "@\u200b", "](", "]\u200b(").Replace(text)
}

// AlertLines returns the sentences of a message.
func (b Builder) AlertLines(m store.AlertMessage) []AlertLine {
	list := make([]AlertLine, 0, len(m.Items))
	for _, i := range m.Items {
		l := AlertLine{item: i}
		l.Before, l.Link, l.After = alertSentence(i)
		switch {
		case i.TaskID != "":
			l.URL = b.PageURL(taskPages+i.TaskID, m.OrganizationID)
		case i.Event == store.EventCapNear || i.Event == store.EventCapReached:
			l.URL = b.PageURL("/usage", m.OrganizationID)
		case i.Event == store.EventBackupFailed, i.Event == store.EventDiskLow, i.Event == store.EventDiskFull,
			i.Event == store.EventDiskOK:
			l.URL = b.PageURL("/settings/system", m.OrganizationID)
		}
		list = append(list, l)
	}
	return list
}

// alertSentence returns the parts of the sentence about an event. Titles are its only text from
// users.
func alertSentence(i store.AlertItem) (before, link, after string) {
	task, worker := "“"+i.Task+"”", "“"+i.Worker+"”"
	if i.WorkerID == "" {
		worker = "other workers"
	}
	one := i.Count == 1 && i.TaskID != ""
	many := func(what string) (string, string, string) {
		if i.TaskID == "" {
			return fmt.Sprintf(what+".", i.Count, worker), "", ""
		}
		return fmt.Sprintf(what+". The newest is ", i.Count, worker), task, "."
	}
	switch i.Event {
	case store.EventTaskFailed:
		if one {
			return "The task ", task, " of " + worker + " failed."
		}
		return many("%d tasks of %s failed")
	case store.EventTaskWaiting:
		if one {
			return "The task ", task, " of " + worker + " waits for an approval or an answer."
		}
		return many("%d times, a task of %s began to wait for an approval or an answer")
	case store.EventDeliveryLost:
		if one {
			return "A webhook delivery of " + worker + " failed permanently. It was about the task ", task, "."
		}
		return many("%d webhook deliveries of %s failed permanently")
	case store.EventMailLost:
		if one {
			return "A mail of " + worker + " could not be delivered. It was about the task ", task, "."
		}
		return many("%d mails of %s could not be delivered")
	case store.EventCapNear:
		return "80% of this month’s ", "credits", " are used."
	case store.EventCapReached:
		return "This month’s ", "credits", " are used up. New tasks are shortened or refused until the month ends " +
			"or an Owner raises the cap."
	}
	return serverSentence(i.Event)
}

// serverSentence returns the parts of the sentence about an event of the whole server.
func serverSentence(event string) (before, link, after string) {
	switch event {
	case store.EventBackupFailed:
		return "A backup of the ", "server", " failed. See the server’s log for the reason."
	case store.EventDiskLow:
		return "The disk of the ", "server", " is nearly full."
	case store.EventDiskFull:
		return "The disk of the ", "server", " is full. The server refuses new work until there is enough space."
	case store.EventDiskOK:
		return "The disk of the ", "server", " has enough space again."
	}
	return "This is a test: alerts arrive here.", "", ""
}

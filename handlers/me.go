package handlers

import (
	"net/http"

	"journeyman/store/people"
)

// getMe writes the organization, user, role and key of the caller.
func (a *API) getMe(w http.ResponseWriter, r *request) error {
	type named struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	}
	type user struct {
		ID    string `json:"id"`
		Email string `json:"email"`
		Name  string `json:"name"`
	}
	type key struct {
		ID     string `json:"id"`
		Name   string `json:"name"`
		Prefix string `json:"prefix"`
	}
	return respond(w, http.StatusOK, struct {
		Organization named       `json:"organization"`
		User         user        `json:"user"`
		Role         people.Role `json:"role"`
		Key          key         `json:"key"`
	}{named{r.who.OrganizationID, r.who.OrganizationName}, user{r.who.UserID, r.who.Email, r.who.UserName}, r.who.Role,
		key{r.who.KeyID, r.who.KeyName, r.who.KeyPrefix}})
}

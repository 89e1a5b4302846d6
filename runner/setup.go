package runner

import "journeyman/runner/model"

// A setup holds the models of the server itself, and their prices.
type setup struct {
	own    []pricedModel // the default chain; capabilities are requested later
	models Models        // models that workers may choose; none if nil
	prices *model.Prices
}

func newSetup(own []model.Model, models Models, prices *model.Prices) *setup {
	s := &setup{models: models, prices: prices}
	for _, m := range own {
		s.own = append(s.own, priced(m, prices))
	}
	return s
}

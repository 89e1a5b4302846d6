package runner

import "journeyman/runner/model"

// A setup holds the parts that an operator may replace while the runner runs.
type setup struct {
	own    []pricedModel // the chain for workers that choose no model; capabilities are read later
	models Models        // models that workers may choose; none if nil
	prices *model.Prices
	number int64 // of the reloads before it
}

func newSetup(own []model.Model, models Models, prices *model.Prices) *setup {
	s := &setup{models: models, prices: prices}
	for _, m := range own {
		s.own = append(s.own, priced(m, prices))
	}
	return s
}

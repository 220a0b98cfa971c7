package main

import (
	"context"

	"github.com/twmb/franz-go/pkg/kadm"
)

// setQuota sets a user's quotas, one for each name, and tells what the user has then.
func (d *driver) setQuota(ctx context.Context, asked request) (answer, error) {
	entry := kadm.AlterClientQuotaEntry{Entity: kadm.ClientQuotaEntity{{Type: "user", Name: &asked.User}}}
	for name, value := range asked.Quotas {
		entry.Ops = append(entry.Ops, kadm.AlterClientQuotaOp{Key: name, Value: value})
	}
	altered, err := d.admin.AlterClientQuotas(ctx, []kadm.AlterClientQuotaEntry{entry})
	if err != nil {
		return nil, err
	}
	for _, each := range altered {
		if each.Err != nil {
			return nil, each.Err
		}
	}
	wanted := []kadm.DescribeClientQuotaComponent{{Type: "user", MatchName: &asked.User}}
	described, err := d.admin.DescribeClientQuotas(ctx, true, wanted)
	if err != nil {
		return nil, err
	}
	quotas := map[string]float64{}
	for _, each := range described {
		for _, value := range each.Values {
			quotas[value.Key] = value.Value
		}
	}
	return answer{"quotas": quotas}, nil
}

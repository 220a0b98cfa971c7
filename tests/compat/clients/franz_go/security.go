package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"os"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// security is CLIENT_SECURITY: how a client logs in, inside TLS. Ca, Certificate and Token are files.
type security struct {
	Ca          string
	Certificate string
	Mechanism   string
	User        string
	Password    string
	Token       string
}

// secured are the options that readSecurity has made, for all clients of this process.
var secured []kgo.Opt

// readSecurity reads CLIENT_SECURITY; without it clients have neither TLS nor logins.
func readSecurity() error {
	said := os.Getenv("CLIENT_SECURITY")
	if said == "" {
		return nil
	}
	var given security
	if err := json.Unmarshal([]byte(said), &given); err != nil {
		return err
	}
	config, err := given.tls()
	if err != nil {
		return err
	}
	secured = append(secured, kgo.DialTLSConfig(config))
	if given.Mechanism == "" {
		return nil
	}
	mechanism, err := given.mechanism()
	secured = append(secured, kgo.SASL(mechanism))
	return err
}

func (s *security) tls() (*tls.Config, error) {
	authority, err := os.ReadFile(s.Ca)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	if !config.RootCAs.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("no certificate in %s", s.Ca)
	}
	if s.Certificate == "" {
		return config, nil
	}
	certificate, err := tls.LoadX509KeyPair(s.Certificate, s.Certificate)
	config.Certificates = []tls.Certificate{certificate}
	return config, err
}

func (s *security) mechanism() (sasl.Mechanism, error) {
	switch s.Mechanism {
	case "PLAIN":
		return plain.Auth{User: s.User, Pass: s.Password}.AsMechanism(), nil
	case "SCRAM-SHA-256":
		return scram.Auth{User: s.User, Pass: s.Password}.AsSha256Mechanism(), nil
	case "SCRAM-SHA-512":
		return scram.Auth{User: s.User, Pass: s.Password}.AsSha512Mechanism(), nil
	case "OAUTHBEARER":
		token, err := os.ReadFile(s.Token)
		return oauth.Auth{Token: string(token)}.AsMechanism(), err
	}
	return nil, fmt.Errorf("franz-go has no mechanism %s", s.Mechanism)
}

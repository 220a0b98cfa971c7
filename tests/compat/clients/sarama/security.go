package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"os"

	"github.com/IBM/sarama"
	"github.com/xdg-go/scram"
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

// hashes are those of the mechanisms for which Sarama wants a library of its user's: SCRAM.
var hashes = map[string]scram.HashGeneratorFcn{
	sarama.SASLTypeSCRAMSHA256: scram.SHA256,
	sarama.SASLTypeSCRAMSHA512: scram.SHA512,
}

// secured are the settings that readSecurity has read, for all clients of this process.
var secured struct {
	tls  *tls.Config
	sasl security
}

// readSecurity reads CLIENT_SECURITY; without it clients have neither TLS nor logins.
func readSecurity() error {
	said := os.Getenv("CLIENT_SECURITY")
	if said == "" {
		return nil
	}
	err := json.Unmarshal([]byte(said), &secured.sasl)
	if err == nil {
		secured.tls, err = secured.sasl.tls()
	}
	return err
}

func secure(config *sarama.Config) {
	config.Net.TLS.Enable = secured.tls != nil
	config.Net.TLS.Config = secured.tls
	given := secured.sasl
	config.Net.SASL.Enable = given.Mechanism != ""
	config.Net.SASL.Mechanism = sarama.SASLMechanism(given.Mechanism)
	config.Net.SASL.User = given.User
	config.Net.SASL.Password = given.Password
	if hash, ok := hashes[given.Mechanism]; ok {
		config.Net.SASL.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient { return &conversation{hash: hash} }
	}
	if given.Token != "" {
		config.Net.SASL.TokenProvider = tokenFile(given.Token)
	}
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

// conversation is one login by SCRAM.
type conversation struct {
	*scram.ClientConversation
	hash scram.HashGeneratorFcn
}

func (c *conversation) Begin(user, password, authzID string) error {
	client, err := c.hash.NewClient(user, password, authzID)
	if err != nil {
		return err
	}
	c.ClientConversation = client.NewConversation()
	return nil
}

// tokenFile gives the token in a file.
type tokenFile string

func (f tokenFile) Token() (*sarama.AccessToken, error) {
	token, err := os.ReadFile(string(f))
	return &sarama.AccessToken{Token: string(token)}, err
}

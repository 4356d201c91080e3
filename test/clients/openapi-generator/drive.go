// drive URL TOKEN NAME: applies an application with most fields, then with the required ones alone, and lists users.
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"

	gatewright "example.com/gatewright/client"
)

const flow = "default-authorization-explicit"

func main() {
	url, token, name := os.Args[1], os.Args[2], os.Args[3]
	configuration := gatewright.NewConfiguration()
	configuration.Servers = gatewright.ServerConfigurations{{URL: url}}
	core := gatewright.NewAPIClient(configuration).CoreAPI
	authenticated := context.WithValue(context.Background(), gatewright.ContextAccessToken, token)

	put := func(app *gatewright.ApplicationFields, provider *gatewright.Oauth2Provider) []string {
		body := gatewright.NewOauth2Submission(*app, "service_providers_oauth2.oauth2provider", *provider)
		submission := gatewright.Oauth2SubmissionAsApplicationSubmission(body)
		answer, _, err := core.CoreTransactionalApplicationsUpdate(authenticated).ApplicationSubmission(submission).Execute()
		check(err)
		return answer.GetLogs()
	}

	first := put(fullApplication(name), fullProvider(name))
	second := put(gatewright.NewApplicationFields(name, name), gatewright.NewOauth2Provider(name, flow))
	users, _, err := core.CoreUsersList(authenticated).GroupsByPk([]string{}).Execute()
	check(err)
	result := map[string]any{"first": first, "second": second, "users": users.Pagination.GetCount()}
	check(json.NewEncoder(os.Stdout).Encode(result))
}

func fullApplication(name string) *gatewright.ApplicationFields {
	app := gatewright.NewApplicationFields(name, name)
	app.SetOpenInNewTab(true)
	app.SetMetaLaunchUrl("https://wiki.example.com/")
	app.SetMetaDescription("Pages of the team")
	app.SetMetaPublisher("Example")
	app.SetPolicyEngineMode(gatewright.ALL)
	app.SetGroup("Documents")
	return app
}

func fullProvider(name string) *gatewright.Oauth2Provider {
	provider := gatewright.NewOauth2Provider(name, flow)
	provider.SetAuthenticationFlow("default-authentication")
	provider.SetInvalidationFlow("default-provider-invalidation")
	provider.SetPropertyMappings([]string{"gatewright/oauth2/scope-openid"})
	provider.SetClientType(gatewright.PUBLIC)
	provider.SetAccessCodeValidity("minutes=5")
	provider.SetAccessTokenValidity("hours=2")
	provider.SetRefreshTokenValidity("days=14")
	provider.SetIncludeClaimsInIdToken(false)
	provider.SetSigningKey("Gatewright self-signed")
	provider.SetRedirectUris([]gatewright.Oauth2ProviderRedirectUrisInner{
		*gatewright.NewOauth2ProviderRedirectUrisInner(gatewright.STRICT, "https://wiki.example.com/in"),
	})
	provider.SetSubMode(gatewright.USER_UUID)
	provider.SetIssuerMode(gatewright.GLOBAL)
	return provider
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

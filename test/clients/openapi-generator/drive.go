// drive URL TOKEN NAME: applies an application with most fields, then with the required ones alone, without waiting, and a set of
// two. It lists users and providers.
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
	client := gatewright.NewAPIClient(configuration)
	core := client.CoreAPI
	authenticated := context.WithValue(context.Background(), gatewright.ContextAccessToken, token)

	submission := func(app *gatewright.ApplicationFields, provider *gatewright.Oauth2Provider) gatewright.ApplicationSubmission {
		body := gatewright.NewOauth2Submission(*app, "service_providers_oauth2.oauth2provider", *provider)
		return gatewright.Oauth2SubmissionAsApplicationSubmission(body)
	}
	minimal := func(name string) gatewright.ApplicationSubmission {
		return submission(gatewright.NewApplicationFields(name, name), gatewright.NewOauth2Provider(name, flow))
	}
	put := func(sent gatewright.ApplicationSubmission) []string {
		answer, response, err := core.CoreTransactionalApplicationsUpdate(authenticated).ApplicationSubmission(sent).Execute()
		check(err)
		if response.StatusCode != 200 {
			log.Fatal(response.Status)
		}
		return answer.GetLogs()
	}

	first := put(submission(fullApplication(name), fullProvider(name)))
	second := put(minimal(name))
	// A 202 is an error, because its body is no result: the status tells it.
	_, response, err := core.CoreTransactionalApplicationsUpdate(authenticated).
		ApplicationSubmission(minimal(name + "-later")).Prefer("respond-async").Execute()
	if response == nil || response.StatusCode != 202 {
		log.Fatal("no 202: ", err)
	}
	accepted := response.Header.Get("Location")
	submissions := gatewright.NewApplicationSubmissions(
		[]gatewright.ApplicationSubmission{minimal(name + "-a"), minimal(name + "-b")})
	set, _, err := client.BlueprintsAPI.BlueprintsUpdate(authenticated).
		BlueprintOrSubmissions(gatewright.ApplicationSubmissionsAsBlueprintOrSubmissions(submissions)).Execute()
	check(err)
	listed, _, err := client.ProvidersAPI.ProvidersAllList(authenticated).Name(name).
		Ordering([]gatewright.ProviderOrdering{gatewright.PROVIDER_ORDERING_NAME_DESC, gatewright.PROVIDER_ORDERING_PK}).Execute()
	check(err)
	providers := []any{}
	for _, each := range listed.Results {
		providers = append(providers, []any{each.ReadOauth2Provider.Name, each.ReadOauth2Provider.GetClientType()})
	}
	users, _, err := core.CoreUsersList(authenticated).GroupsByPk([]string{}).Execute()
	check(err)
	result := map[string]any{
		"first": first, "second": second, "accepted": accepted, "set": set.GetLogs(),
		"users": users.Pagination.GetCount(), "providers": providers,
	}
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

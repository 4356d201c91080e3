// drive URL TOKEN NAME: applies an application with most fields, then with the required ones alone, without waiting, and a set of
// two. It lists users and providers.
package main

import (
	"context"
	"encoding/json"
	"log"
	"net/http"
	"os"

	"example.com/gatewright/client/gatewright"
)

const flow = "default-authorization-explicit"

func main() {
	url, token, name := os.Args[1], os.Args[2], os.Args[3]
	authenticate := func(_ context.Context, request *http.Request) error {
		request.Header.Set("Authorization", "Bearer "+token)
		return nil
	}
	client, err := gatewright.NewClientWithResponses(url, gatewright.WithRequestEditorFn(authenticate))
	check(err)
	background := context.Background()

	put := func(sent gatewright.ApplicationSubmission, prefer *string) *gatewright.CoreTransactionalApplicationsUpdateResponse {
		params := &gatewright.CoreTransactionalApplicationsUpdateParams{Prefer: prefer}
		answer, err := client.CoreTransactionalApplicationsUpdateWithResponse(background, params, sent)
		check(err)
		return answer
	}

	// A 200 has JSON200, a 202 has JSON202.
	first := put(submission(fullApplication(name), fullProvider(name)), nil).JSON200.Logs
	second := put(minimal(name), nil).JSON200.Logs
	accepted := put(minimal(name+"-later"), of("respond-async")).JSON202.Run
	var both gatewright.BlueprintOrSubmissions
	submissions := []gatewright.ApplicationSubmission{minimal(name + "-a"), minimal(name + "-b")}
	check(both.FromApplicationSubmissions(gatewright.ApplicationSubmissions{Submissions: submissions}))
	set, err := client.BlueprintsUpdateWithResponse(background, &gatewright.BlueprintsUpdateParams{}, both)
	check(err)
	users, err := client.CoreUsersListWithResponse(background, &gatewright.CoreUsersListParams{})
	check(err)
	ordering := []gatewright.ProviderOrdering{gatewright.PROVIDERORDERINGNAMEDESC, gatewright.PROVIDERORDERINGPK}
	listed, err := client.ProvidersAllListWithResponse(
		background, &gatewright.ProvidersAllListParams{Name: &name, Ordering: &ordering})
	check(err)
	providers := []any{}
	for _, each := range listed.JSON200.Results {
		provider, err := each.AsReadOauth2Provider()
		check(err)
		providers = append(providers, []any{provider.Name, provider.ClientType})
	}
	result := map[string]any{
		"first": first, "second": second, "accepted": accepted, "set": set.JSON200.Logs,
		"users": users.JSON200.Pagination.Count, "providers": providers,
	}
	check(json.NewEncoder(os.Stdout).Encode(result))
}

func submission(app gatewright.ApplicationFields, provider gatewright.Oauth2Provider) gatewright.ApplicationSubmission {
	var sent gatewright.ApplicationSubmission
	check(sent.FromOauth2Submission(gatewright.Oauth2Submission{App: app, Provider: provider}))
	return sent
}

func minimal(name string) gatewright.ApplicationSubmission {
	app := gatewright.ApplicationFields{Name: name, Slug: name}
	return submission(app, gatewright.Oauth2Provider{Name: name, AuthorizationFlow: flow})
}

func fullApplication(name string) gatewright.ApplicationFields {
	return gatewright.ApplicationFields{
		Name:             name,
		Slug:             name,
		OpenInNewTab:     of(true),
		MetaLaunchUrl:    of("https://wiki.example.com/"),
		MetaDescription:  of("Pages of the team"),
		MetaPublisher:    of("Example"),
		PolicyEngineMode: of(gatewright.PolicyEngineMode("all")),
		Group:            of("Documents"),
	}
}

func fullProvider(name string) gatewright.Oauth2Provider {
	return gatewright.Oauth2Provider{
		Name:                   name,
		AuthenticationFlow:     of("default-authentication"),
		AuthorizationFlow:      flow,
		InvalidationFlow:       of("default-provider-invalidation"),
		PropertyMappings:       of([]string{"gatewright/oauth2/scope-openid"}),
		ClientType:             of(gatewright.ClientType("public")),
		AccessCodeValidity:     of("minutes=5"),
		AccessTokenValidity:    of("hours=2"),
		RefreshTokenValidity:   of("days=14"),
		IncludeClaimsInIdToken: of(false),
		SigningKey:             of("Gatewright self-signed"),
		SubMode:                of(gatewright.SubMode("user_uuid")),
		IssuerMode:             of(gatewright.IssuerMode("global")),
	}
}

func of[Value any](value Value) *Value {
	return &value
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
